// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/byte_stream.hpp"
#include "messaging/links/node_address.hpp"
#include "messaging/links/socket_address.hpp"

#include <tl/expected.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// Sockets that listen at the addresses of one host, with the same port at each
/// address. Calls never block. For one thread at a time.
class listening_sockets {
public:
  /// Listens at each of the candidates that is an address of this machine. The error
  /// says which address failed, and why.
  /// \param name the host and the port; port 0: any port that is free at all addresses
  static tl::expected<listening_sockets, std::string>
  listen(const node_address& name, const std::vector<socket_address>& candidates);

  std::uint16_t port() const { return port_; }

  /// A descriptor for poll(): readable while a connection waits at any address.
  int descriptor() const { return readiness_.get(); }

  /// Returns the next waiting connection, as a non-blocking socket. Returns no socket
  /// if no connection waits, the connection has ended, or the process has no free
  /// descriptor; errno then has the reason. Calls try the addresses in turn.
  socket_descriptor accept();

  /// The IP addresses at which the sockets listen.
  const std::vector<std::string>& addresses() const { return addresses_; }

  /// IP addresses of the host that this machine does not have, each with the system's
  /// reason: "::1: Address family not supported by protocol".
  const std::vector<std::string>& absent() const { return absent_; }

private:
  struct mistake {
    int code; ///< errno
    std::string sentence;
  };
  static tl::expected<listening_sockets, mistake>
  open(const std::vector<socket_address>& candidates, std::uint16_t port);

  std::uint16_t port_ = 0;
  std::vector<socket_descriptor> sockets_;
  std::size_t next_ = 0;        // index of sockets_, for the next accept
  socket_descriptor readiness_; // an epoll descriptor of all sockets
  std::vector<std::string> addresses_, absent_;
};

/// Listens at all addresses of this machine that the host's name has. The error says
/// why the name has no address, or which address failed and why.
tl::expected<listening_sockets, std::string> listen_at(const node_address& a);

} // namespace troupe
