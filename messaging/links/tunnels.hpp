// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"
#include "messaging/links/waker.hpp"

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe {

/// Passes bytes in both directions between streams and sockets of this process. Code
/// that needs a plain socket can therefore use a TLS stream: only bytes that TLS has
/// accepted reach the socket. Owns one thread.
class tunnels {
public:
  /// Starts the thread.
  /// \throws no_thread if the system cannot start a thread
  tunnels();
  /// Ends all tunnels and the thread.
  ~tunnels();
  tunnels(const tunnels&) = delete;
  tunnels& operator=(const tunnels&) = delete;

  /// Returns a non-blocking socket whose other end is the stream. When the socket or
  /// the stream ends, the tunnel ends the other of the two. Thread: any.
  /// \throws std::runtime_error if no socket can be opened
  /// \pre the stream's handshake is complete
  socket_descriptor open(std::unique_ptr<byte_stream> stream);

private:
  /// Bytes under way in one direction. While some bytes wait, no more bytes are read.
  struct lane {
    std::vector<std::byte> bytes;
    std::size_t sent = 0;

    bool empty() const { return sent == bytes.size(); }
  };
  struct tunnel {
    std::unique_ptr<byte_stream> outside;
    std::unique_ptr<byte_stream> inside;
    lane out, in;
  };

  static bool pass(byte_stream& from, byte_stream& to, lane& pending);
  void work();

  waker wakes_;
  std::mutex lock_;
  std::vector<tunnel> added_;
  bool stopping_ = false;
  std::list<tunnel> open_; // used by the thread only
  std::thread thread_;
};

} // namespace troupe
