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

/// A connected socket, non-blocking, that sends small messages at once: by the first of
/// the host's addresses that answers. On error says why each of them failed.
/// \param patience with each address
tl::expected<socket_descriptor, std::string>
connect_to(const node_address& a, std::chrono::milliseconds patience);

/// The same by addresses that the host is known to have.
tl::expected<socket_descriptor, std::string>
connect_to(const node_address& name, const std::vector<socket_address>& all,
           std::chrono::milliseconds patience);

} // namespace troupe
