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

/// Passes bytes both ways between streams and sockets of this process, for whoever only
/// knows sockets: what it is handed is what TLS has let through. One thread.
class tunnels {
public:
  /// \throws no_thread
  tunnels();
  ~tunnels();
  tunnels(const tunnels&) = delete;
  tunnels& operator=(const tunnels&) = delete;

  /// The socket that stands for a stream whose hands have been shaken. It ends with the
  /// stream, and the stream with it. \throws std::runtime_error if there is no socket
  socket_descriptor open(std::unique_ptr<byte_stream> stream);

private:
  /// Bytes on their way in one direction: no more are read while some wait.
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

  static bool pass(byte_stream& from, byte_stream& to, lane& by);
  void work();

  waker wakes_;
  std::mutex lock_;
  std::vector<tunnel> added_;
  bool stopping_ = false;
  std::list<tunnel> open_; // of the thread
  std::thread thread_;
};

} // namespace troupe
