// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"
#include "messaging/links/frame.hpp"
#include "messaging/links/listening_sockets.hpp"
#include "messaging/links/node_address.hpp"
#include "messaging/links/waker.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

namespace troupe {

/// Takes connections of anybody, and gives away those that have greeted as they should.
/// Until then nobody gets more than a place in a list of bounded length, a few KiB and
/// some seconds. One thread.
class acceptor {
public:
  /// Makes a stream of a socket that has connected.
  using stream_maker = std::function<std::unique_ptr<byte_stream>(socket_descriptor)>;
  /// Gets those who have greeted, on the acceptor's thread.
  using guest = std::function<void(const greeting&, std::unique_ptr<byte_stream>)>;

  struct limits {
    std::size_t most_waiting = 256; ///< The one who has waited longest goes first.
    std::chrono::milliseconds patience{5000}; ///< With hands and greeting.
    std::size_t most_handshakes = 64; ///< That hold memory; the oldest goes first.
  };

  acceptor(listening_sockets at, stream_maker make, guest welcome, limits most);
  acceptor(listening_sockets at, stream_maker make, guest welcome)
    : acceptor(std::move(at), std::move(make), std::move(welcome), limits{}) {
    // nop
  }

  /// Takes no more connections.
  ~acceptor();
  acceptor(const acceptor&) = delete;
  acceptor& operator=(const acceptor&) = delete;

  std::uint16_t port() const { return at_.port(); }

  /// Raises the limits of waiting connections and of handshakes by a number of guests,
  /// as the nodes of a run may connect at the same time. Thread: any.
  void expect(std::size_t guests) { expected_ = guests; }

  /// Connections that have not greeted as they should.
  std::int64_t strangers() const { return strangers_; }

private:
  struct waiting {
    std::unique_ptr<byte_stream> stream;
    std::chrono::steady_clock::time_point until;
    bool shaken = false;
    short events = 0;
    greeting first = {};
    std::size_t there = 0; // bytes of that
  };

  enum class end : std::uint8_t { none, welcome, stranger };

  void work();
  void take_new();
  static end go_on(waiting& one);
  void drop_oldest();
  void bound_handshakes();
  void return_memory();

  listening_sockets at_;
  stream_maker make_;
  guest welcome_;
  limits most_;
  std::atomic<std::size_t> expected_ = 0; // connections above the limits
  waker stops_;
  std::list<waiting> waiting_; // the oldest first
  std::atomic<std::int64_t> strangers_ = 0;
  std::int64_t trimmed_at_ = 0; // strangers
  std::thread thread_;
};

/// Connects, shakes hands and greets. Blocks for as long as `patience` at most with
/// each of the host's addresses, and with the hands. On error says who refused, and
/// why.
tl::expected<std::unique_ptr<byte_stream>, std::string>
greet(const node_address& a, const acceptor::stream_maker& make, const greeting& first,
      std::chrono::milliseconds patience);

} // namespace troupe
