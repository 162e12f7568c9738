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

/// Parses text of the form "host:4242" or "[::1]:4242". The error shows the text and
/// the allowed form.
tl::expected<node_address, std::string> parse_address(const std::string& text);

/// Returns the address in the form that parse_address() reads.
std::string to_string(const node_address& a);

/// True if all addresses of the host are loopback addresses (is_loopback of
/// socket_address.hpp), which only this machine can reach. The error says why the
/// host's name has no address.
tl::expected<bool, std::string> is_loopback(const node_address& a);

/// Returns a connected, non-blocking socket that sends small messages without delay.
/// The socket uses the first of the host's addresses that answers. The error says why
/// the host's name has no address, or why each address failed.
/// \param timeout for each address; after the look-up of the name, the call blocks
/// until an address answers or all have failed
tl::expected<socket_descriptor, std::string>
connect_to(const node_address& a, std::chrono::milliseconds timeout);

/// Like connect_to(a, timeout), with addresses that the caller has looked up.
/// \param name host and port, for errors
/// \param addresses of the host, with the port
tl::expected<socket_descriptor, std::string>
connect_to(const node_address& name, const std::vector<socket_address>& addresses,
           std::chrono::milliseconds timeout);

} // namespace troupe
