// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/control_lines.hpp"
#include "messaging/links/acceptor.hpp"

#include <tl/expected.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace troupe {

/// Opens connections from this process to other processes, without encryption or by
/// TLS, and makes control lines of outgoing and accepted connections. Thread-safe.
class connector {
public:
  virtual ~connector() = default;

  /// True if connections are encrypted.
  virtual bool encrypts() const { return false; }

  /// Wraps a socket that is connected to `host` in a stream.
  virtual std::unique_ptr<byte_stream> to(socket_descriptor socket,
                                          const std::string& host) = 0;

  /// Makes a control line of a stream on which the greeting has passed. CAF's middleman
  /// takes over the stream's socket.
  virtual std::shared_ptr<control_line> line(std::unique_ptr<byte_stream> stream,
                                             control_listener listener) = 0;

  /// Connects to an address and sends a greeting. Returns the stream, or a sentence
  /// about the error. Blocks for at most `timeout` with each of the host's addresses,
  /// and for at most `timeout` in handshake and greeting.
  tl::expected<std::unique_ptr<byte_stream>, std::string>
  greet(const node_address& where, const greeting& hello,
        std::chrono::milliseconds timeout) {
    const auto make = [&](socket_descriptor socket) {
      return to(std::move(socket), where.host);
    };
    return troupe::connect_and_greet(where, make, hello, timeout);
  }
};

} // namespace troupe
