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

/// Accepts connections from any process, and hands over the connections that have sent
/// a valid greeting. The number of connections without a greeting is bounded. Each such
/// connection lives for `limits::timeout` at most, and holds a few KiB or the memory of
/// a handshake. Owns one thread.
class acceptor {
public:
  /// Makes a stream of a connected, non-blocking socket. An acceptor calls the maker on
  /// the acceptor's thread, where null closes the connection. connect_and_greet() calls
  /// the maker on the caller's thread, and needs a stream.
  using stream_maker = std::function<std::unique_ptr<byte_stream>(socket_descriptor)>;
  /// Receives a connection with a valid greeting, on the acceptor's thread. An
  /// exception closes the connection.
  using connection_handler =
    std::function<void(const greeting&, std::unique_ptr<byte_stream>)>;

  struct limits {
    /// The largest number of connections without a greeting. Above the limit, or if the
    /// process has no free descriptor, the oldest such connection is closed.
    std::size_t most_waiting = 256;
    /// Time that each connection has for handshake and greeting together.
    std::chrono::milliseconds timeout{5000};
    /// The largest number of handshakes that hold memory. Above the limit, the oldest
    /// of the connections with such a handshake is closed.
    std::size_t most_handshakes = 64;
  };

  /// Starts the thread.
  /// \throws no_thread if the system cannot start a thread
  acceptor(listening_sockets sockets, stream_maker make,
           connection_handler on_connection, limits most);
  acceptor(listening_sockets sockets, stream_maker make,
           connection_handler on_connection)
    : acceptor(std::move(sockets), std::move(make), std::move(on_connection),
               limits{}) {
    // nop
  }

  /// Accepts no more connections, closes waiting connections, and waits for the thread.
  ~acceptor();
  acceptor(const acceptor&) = delete;
  acceptor& operator=(const acceptor&) = delete;

  std::uint16_t port() const { return sockets_.port(); }

  /// Raises the constructor's limits of waiting connections and of handshakes by
  /// `guests`. The number replaces the number of an earlier call. The nodes of a run
  /// may connect at the same time. Thread: any.
  void expect(std::size_t guests) { expected_ = guests; }

  /// The number of connections that were closed without a valid greeting, or because
  /// memory or threads were missing. A connection for which the maker returns null does
  /// not count. Thread: any.
  std::int64_t rejected() const { return rejected_; }

private:
  struct waiting {
    std::unique_ptr<byte_stream> stream;
    std::chrono::steady_clock::time_point until;
    bool shaken = false;
    short events = 0;
    greeting first = {};
    std::size_t greeting_bytes = 0; // received bytes of the greeting
  };

  enum class end : std::uint8_t { none, accepted, rejected };

  void work();
  void take_new();
  static end advance(waiting& connection);
  void drop_oldest();
  void bound_handshakes();
  void return_memory();

  listening_sockets sockets_;
  stream_maker make_;
  connection_handler on_connection_;
  limits most_;
  std::atomic<std::size_t> expected_ = 0; // connections above the limits
  waker stops_;
  std::list<waiting> waiting_; // the oldest first
  std::atomic<std::int64_t> rejected_ = 0;
  std::int64_t trimmed_at_ = 0; // value of rejected_ at the last malloc_trim
  std::thread thread_;
};

/// Connects, shakes hands, sends the greeting, and returns the stream. Blocks for at
/// most `timeout` with each of the host's addresses, and for at most `timeout` in
/// handshake and greeting. The look-up of the host's name may block longer. The error
/// says which node could not be reached or refused, and why.
tl::expected<std::unique_ptr<byte_stream>, std::string>
connect_and_greet(const node_address& a, const acceptor::stream_maker& make,
                  const greeting& first, std::chrono::milliseconds timeout);

} // namespace troupe
