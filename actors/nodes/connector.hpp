// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/control_lines.hpp"
#include "messaging/links/acceptor.hpp"

#include <tl/expected.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace troupe {

/// How this process reaches others: in plain, or by TLS. Any thread may ask.
class connector {
public:
  virtual ~connector() = default;

  /// Whether nobody else can read what passes.
  virtual bool encrypts() const { return false; }

  /// A stream of a socket that is connected to this host.
  virtual std::unique_ptr<byte_stream> to(socket_descriptor socket,
                                          const std::string& host) = 0;

  /// A control line of a stream whose other side has greeted, or was greeted: the
  /// middleman gets its socket.
  virtual std::shared_ptr<control_line> line(std::unique_ptr<byte_stream> stream,
                                             control_listener listener) = 0;

  /// Connects, and greets; as troupe::greet.
  tl::expected<std::unique_ptr<byte_stream>, std::string>
  greet(const node_address& where, const greeting& hello,
        std::chrono::milliseconds patience) {
    const auto make = [&](socket_descriptor socket) {
      return to(std::move(socket), where.host);
    };
    return troupe::greet(where, make, hello, patience);
  }
};

} // namespace troupe
