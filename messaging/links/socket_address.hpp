// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"

#include <sys/socket.h>
#include <tl/expected.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// An IP address and a port, in the form that system calls read. One host may have
/// several addresses.
struct socket_address {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  int family() const { return bytes.ss_family; }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

/// Returns all addresses of a host in getaddrinfo's order, each once. The error says
/// why there are none.
/// \param listens whether a server binds to the addresses
tl::expected<std::vector<socket_address>, std::string>
addresses_of(const std::string& host, std::uint16_t port, bool listens);

/// The text of an IP address: "127.0.0.1" or "::1".
std::string ip_of(const socket_address& a);

std::uint16_t port_of(const socket_address& a);

/// Returns address `a` with port `port`.
socket_address with_port(socket_address a, std::uint16_t port);

/// True for 127.0.0.0/8 and ::1, which only this machine can reach.
bool is_loopback(const socket_address& a);

/// A non-blocking TCP socket of the address' family. Returns no socket on failure;
/// errno then has the reason.
socket_descriptor open_socket(const socket_address& a);

/// Makes the system send small messages immediately, without collecting more bytes
/// (TCP_NODELAY).
void send_at_once(const socket_descriptor& socket);

} // namespace troupe
