// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"

#include <tl/expected.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace troupe {

/// Where a node listens: a host's name or IP address, and a port.
struct node_address {
  std::string host;
  std::uint16_t port = 0; ///< 0: any that is free, where one listens.

  bool operator==(const node_address&) const = default;
};

/// "host:4242", or "[::1]:4242". On error says what is wrong with the text.
tl::expected<node_address, std::string> parse_address(const std::string& text);

std::string to_string(const node_address& a);

/// Whether only this machine reaches the address.
tl::expected<bool, std::string> is_loopback(const node_address& a);

/// A socket that listens, and the port that it has. Non-blocking.
struct listener_socket {
  socket_descriptor socket;
  std::uint16_t port;
};
tl::expected<listener_socket, std::string> listen_at(const node_address& a);

/// The next connection that waits there; none if none does, or it is gone again.
socket_descriptor accept_from(const socket_descriptor& listener);

/// A connected socket, non-blocking, that sends small messages at once. On error says
/// who refused. \param patience with each of the host's addresses
tl::expected<socket_descriptor, std::string>
connect_to(const node_address& a, std::chrono::milliseconds patience);

} // namespace troupe
