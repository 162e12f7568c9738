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

/// A frame to be sent. Its payload is gathered from where it is.
struct outgoing_frame {
  struct part {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> keeps; ///< Them, until they are written.
  };

  frame_kind what = frame_kind::mail;
  std::vector<unsigned char> text;
  std::vector<part> payload;
};

/// Who takes frames that come in. Peers have numbers. All calls come from the thread of
/// the link.
class frame_receiver {
public:
  virtual ~frame_receiver() = default;

  using places = std::vector<std::span<std::byte>>;

  /// A frame's text is here. Returns where its payload belongs: as many bytes.
  /// On error the link ends.
  virtual tl::expected<places, std::string> place(int peer, frame_kind what,
                                                  std::span<const unsigned char> text,
                                                  std::uint64_t payload_bytes) = 0;

  /// The payload is there. Returns what is wrong, if anything; then the link ends.
  virtual std::string deliver(int peer) = 0;

  /// No frame comes any more, and none can be sent.
  virtual void lost(int peer, const std::string& why) = 0;
};

/// One end of a connection that frames travel on, both ways: the bytes of each are read
/// to where they belong, and written from where they are. For one thread.
class tensor_link {
public:
  /// \param stream whose hands have been shaken \param receiver outlives it
  tensor_link(int peer, std::unique_ptr<byte_stream> stream, session_id of,
              std::uint64_t most_payload_bytes, frame_receiver& receiver);

  int socket() const { return stream_->socket(); }

  void add(outgoing_frame one) { queue_.push_back(std::move(one)); }

  /// Reads or writes what can be without waiting. Returns why the link has ended; empty
  /// if it has not.
  std::string read();
  std::string write();

  /// Whether there is something to write that the socket may take now.
  bool wants_to_write() const { return writing_ || !queue_.empty(); }

  std::int64_t stale() const { return stale_; }

  /// Bytes read and written.
  std::int64_t moved() const { return moved_; }

private:
  enum class phase : std::uint8_t { header, text, payload };

  void begin_writing();
  std::string take(std::span<const std::byte>& bytes);
  std::string end_header();
  std::string end_text();
  std::string end_payload();
  std::span<std::byte> rest_of_place();
  void fill(std::size_t bytes);

  int peer_;
  std::unique_ptr<byte_stream> stream_;
  session_id session_;
  std::uint64_t most_payload_bytes_;
  frame_receiver* receiver_;

  // What is written.
  std::deque<outgoing_frame> queue_;
  bool writing_ = false; // the first of them
  frame_header header_out_;
  std::vector<iovec> left_;
  std::uint64_t sent_ = 0; // frames

  // What is read.
  phase phase_ = phase::header;
  std::vector<std::byte> ahead_; // of what is known to belong somewhere
  frame_header header_in_;
  std::size_t there_ = 0; // bytes of header or text
  std::vector<unsigned char> text_;
  frame_receiver::places places_;
  std::size_t place_ = 0;          // that is filled next
  bool drops_ = false;             // the frame: it is of an older generation
  std::uint64_t left_to_drop_ = 0; // bytes of its payload
  running_checksum sum_in_, sum_out_;
  std::uint64_t received_ = 0; // frames
  std::int64_t stale_ = 0;
  std::int64_t moved_ = 0;
};

} // namespace troupe
