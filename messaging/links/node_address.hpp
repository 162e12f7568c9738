// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"
#include "messaging/links/socket_address.hpp"

#include <tl/expected.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// The address at which a node listens: a host's name or IP address, and a port.
struct node_address {
  std::string host;
  std::uint16_t port = 0; ///< 0: any free port, in an address to listen at.

  bool operator==(const node_address&) const = default;
};

/// Text of the form "host:4242", or "[::1]:4242". The error of parse_address() says
/// which part of the text is wrong.
tl::expected<node_address, std::string> parse_address(const std::string& text);

std::string to_string(const node_address& a);

/// True if only this machine can reach the address. The error says why the host is
/// unknown.
tl::expected<bool, std::string> is_loopback(const node_address& a);

/// A connected, non-blocking socket that sends small messages without delay. The socket
/// uses the first of the host's addresses that answers. The error says why each address
/// failed.
/// \param timeout with each address; blocks as long
tl::expected<socket_descriptor, std::string>
connect_to(const node_address& a, std::chrono::milliseconds timeout);

/// A connected socket, as above, to the first of `addresses` that answers.
/// \param name of the host, for errors \param addresses of the host
tl::expected<socket_descriptor, std::string>
connect_to(const node_address& name, const std::vector<socket_address>& addresses,
           std::chrono::milliseconds timeout);

} // namespace troupe
