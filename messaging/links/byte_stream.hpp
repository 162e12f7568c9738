// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace troupe {

/// A socket, closed with its owner.
class socket_descriptor {
public:
  socket_descriptor() = default;
  explicit socket_descriptor(int fd) : fd_(fd) {
    // nop
  }
  socket_descriptor(socket_descriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {
    // nop
  }
  socket_descriptor& operator=(socket_descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~socket_descriptor();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

  /// Leaves it to the caller.
  int release() { return std::exchange(fd_, -1); }

private:
  int fd_ = -1;
};

/// How a read, a write or a handshake went on.
struct stream_progress {
  enum class state : std::uint8_t {
    moved,       ///< Some bytes; of a handshake: it is over.
    needs_read,  ///< Nothing until the socket is readable,
    needs_write, ///< or writable.
    closed,      ///< The other side has ended the stream.
    failed,
  };

  state how;
  std::size_t bytes = 0; ///< Moved.
};

/// A connection to another process, in plain or by TLS. Never blocks. For one thread.
class byte_stream {
public:
  virtual ~byte_stream() = default;

  /// Goes on with what comes before the first byte; `moved` when that is over, and
  /// both sides accept each other.
  virtual stream_progress shake_hands() = 0;

  /// Reads what is there, at most so much; of no room says `moved`.
  /// \pre shake_hands() is over
  virtual stream_progress read(std::span<std::byte> to) = 0;

  /// Writes some of these, in order. Bytes that it does not take begin the next write:
  /// all of them, and perhaps more behind, however they are cut into parts.
  /// \pre shake_hands() is over
  virtual stream_progress write(std::span<const iovec> parts) = 0;

  /// Whether bytes can be read that the socket does not show any more.
  virtual bool has_more() const { return false; }

  /// Whether it holds memory for a handshake that is under way.
  virtual bool has_handshake() const { return false; }

  /// Why it failed, in words about the other side: "its certificate has expired". Also
  /// of one closed: that it was cut off, where TLS tells. Else empty.
  virtual const std::string& failure() const = 0;

  /// To wait for. Non-blocking.
  virtual int socket() const = 0;

  /// Gives the socket away, if nothing but the socket makes the stream; else none.
  virtual socket_descriptor take_socket() { return {}; }
};

/// A stream of the socket's own bytes. \param socket non-blocking
std::unique_ptr<byte_stream> plain_stream(socket_descriptor socket);

} // namespace troupe
