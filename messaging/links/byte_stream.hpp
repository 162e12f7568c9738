// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

// A non-blocking connection to another process, and the interface that plain and TLS
// connections share.

namespace troupe {

/// A socket, closed by the destructor. Owns the descriptor.
class socket_descriptor {
public:
  socket_descriptor() = default;
  explicit socket_descriptor(int fd) : fd_(fd) {
    // nop
  }
  socket_descriptor(socket_descriptor&& source) noexcept
    : fd_(std::exchange(source.fd_, -1)) {
    // nop
  }
  socket_descriptor& operator=(socket_descriptor&& source) noexcept {
    std::swap(fd_, source.fd_);
    return *this;
  }
  ~socket_descriptor();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

  /// Releases ownership to the caller, without closing the socket.
  int release() { return std::exchange(fd_, -1); }

private:
  int fd_ = -1;
};

/// The progress of a read, a write or a handshake.
struct stream_progress {
  enum class state : std::uint8_t {
    moved,       ///< `bytes` bytes were moved, or a handshake is complete.
    needs_read,  ///< No progress until the socket is readable.
    needs_write, ///< No progress until the socket is writable.
    closed,      ///< The other side has ended the stream.
    failed,
  };

  state outcome;
  std::size_t bytes = 0; ///< Number of bytes moved.
};

/// A connection to another process, in plain or by TLS. Calls never block. For one
/// thread at a time.
class byte_stream {
public:
  virtual ~byte_stream() = default;

  /// Continues the handshake. Returns `moved` when the handshake is complete, and both
  /// sides accept each other.
  virtual stream_progress shake_hands() = 0;

  /// Reads available bytes, at most `to.size()`. With an empty span returns `moved`; a
  /// TLS stream that has ended returns the end.
  /// \pre shake_hands() has returned `moved`
  virtual stream_progress read(std::span<std::byte> to) = 0;

  /// Writes bytes in order. `bytes` of the result is the number of bytes written, which
  /// may be smaller than all bytes.
  /// \pre shake_hands() has returned `moved`
  /// \pre `parts` begins with all bytes that the last call did not write, cut into
  /// parts in any way; more bytes may follow
  virtual stream_progress write(std::span<const iovec> parts) = 0;

  /// True if read() would return bytes, or the stream's end, that poll() does not
  /// report on the socket.
  virtual bool has_more() const { return false; }

  /// True while the stream holds memory for an incomplete handshake.
  virtual bool has_handshake() const { return false; }

  /// After `failed`: the reason, as a sentence about the other side or the system's
  /// text for the error. After `closed`: a sentence if TLS has detected that the
  /// connection was cut off. Otherwise empty. The text is valid until the next call.
  virtual const std::string& failure() const = 0;

  /// The non-blocking socket, for poll(). The stream keeps ownership.
  virtual int socket() const = 0;

  /// Hands over the socket if the stream has no state besides the socket. Otherwise
  /// returns no socket, and keeps the stream's socket.
  virtual socket_descriptor take_socket() { return {}; }
};

/// Returns a stream of the socket's plain bytes.
/// \param socket non-blocking
std::unique_ptr<byte_stream> plain_stream(socket_descriptor socket);

} // namespace troupe
