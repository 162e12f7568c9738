// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/checksum.hpp"
#include "messaging/links/byte_stream.hpp"
#include "messaging/links/frame.hpp"

#include <tl/expected.hpp>

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// A frame to be sent. The payload is gathered from parts in any memory of the process.
struct outgoing_frame {
  struct part {
    std::span<const std::byte> bytes;
    /// Keeps the bytes alive until the link has written them.
    std::shared_ptr<const void> keeps;
  };

  frame_kind kind = frame_kind::message;
  std::vector<unsigned char> text;
  std::vector<part> payload;
};

/// Receives the frames of links. A number identifies each peer. All calls come from the
/// thread that reads the links.
class frame_receiver {
public:
  virtual ~frame_receiver() = default;

  using areas = std::vector<std::span<std::byte>>;

  /// Handles a frame's text. Returns memory areas for the payload, of `payload_bytes`
  /// bytes together. The areas must stay valid until deliver(), or the end of the link.
  /// On error the link ends.
  virtual tl::expected<areas, std::string> place(int peer, frame_kind kind,
                                                 std::span<const unsigned char> text,
                                                 std::uint64_t payload_bytes) = 0;

  /// Handles the frame whose payload has arrived in the areas of place(). Returns the
  /// error, with which the link ends; empty if there is none.
  virtual std::string deliver(int peer) = 0;

  /// The link has ended: no more frames arrive, and none can be sent. Not called for
  /// links that tensor_links::close() ends.
  virtual void lost(int peer, const std::string& why) = 0;
};

/// One end of a connection for frames in both directions. The link reads a payload into
/// the memory that the receiver returns, and writes a payload from the frame's parts.
/// Up to 64 KiB are read ahead, and copied. For one thread at a time.
class tensor_link {
public:
  /// \param stream with a complete handshake
  /// \param receiver outlives this object
  tensor_link(int peer, std::unique_ptr<byte_stream> stream, session_id session,
              std::uint64_t most_payload_bytes, frame_receiver& receiver);

  int socket() const { return stream_->socket(); }

  void add(outgoing_frame frame) { queue_.push_back(std::move(frame)); }

  /// Reads bytes that have arrived: about 8 MiB at most, so that other links get a
  /// turn. Bytes that the stream has already taken from the socket are read, too.
  /// Returns the reason why the link has ended; empty if the link has not ended.
  std::string read();
  /// Writes waiting bytes until the socket takes no more. Returns the reason why the
  /// link has ended; empty if the link has not ended.
  std::string write();

  /// True if there are bytes to write.
  bool wants_to_write() const { return writing_ || !queue_.empty(); }

  /// Number of received frames of older generations, which were dropped.
  std::int64_t stale() const { return stale_; }

  /// Number of bytes read and written so far.
  std::int64_t moved() const { return moved_; }

private:
  enum class phase : std::uint8_t { header, text, payload };

  void begin_writing();
  std::string consume(std::span<const std::byte>& bytes);
  std::string end_header();
  std::string end_text();
  std::string end_payload();
  std::span<std::byte> rest_of_area();
  void fill(std::size_t bytes);

  int peer_;
  std::unique_ptr<byte_stream> stream_;
  session_id session_;
  std::uint64_t most_payload_bytes_;
  frame_receiver* receiver_;

  // The frames to write.
  std::deque<outgoing_frame> queue_;
  bool writing_ = false; // a part of the first frame has been written
  frame_header header_out_;
  std::vector<iovec> left_;
  std::uint64_t sent_ = 0; // number of frames

  // The frame being read.
  phase phase_ = phase::header;
  std::vector<std::byte> ahead_; // bytes read before their memory area is known
  frame_header header_in_;
  std::size_t filled_bytes_ = 0; // bytes of header or text that have arrived
  std::vector<unsigned char> text_;
  frame_receiver::areas areas_;
  std::size_t area_index_ = 0; // index of the area to fill next
  bool drops_ = false; // the frame being read is of an older generation, and is dropped
  std::uint64_t left_to_drop_ = 0; // bytes of the dropped payload
  running_checksum sum_in_, sum_out_;
  std::uint64_t received_ = 0; // number of frames
  std::int64_t stale_ = 0;
  std::int64_t moved_ = 0;
};

} // namespace troupe
