// SPDX-License-Identifier: BSD-3-Clause
// Hosts with several addresses: clients try each in order, servers listen at each. All
// of 127.0.0.0/8 is this machine. An address family that no kernel has stands for a
// family that a machine lacks.

#include "messaging/links/acceptor.hpp"
#include "messaging/links/listening_sockets.hpp"
#include "messaging/links/node_address.hpp"
#include "messaging/links/socket_address.hpp"

#include <catch2/catch_test_macros.hpp>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <vector>

namespace troupe::host_addresses_test {

using namespace std::chrono_literals;
using addresses = std::vector<socket_address>;

namespace {

socket_address address(const std::string& ip, std::uint16_t port) {
  return addresses_of(ip, port, false)->front();
}

/// An address of a family that the kernel does not have.
socket_address of_no_family() {
  socket_address result{.size = sizeof(sockaddr_storage)};
  result.bytes.ss_family = AF_ASH;
  return result;
}

const std::string no_family = "an address of family " + std::to_string(AF_ASH)
                              + ": Address family not supported by protocol";

/// The IP address at which a server has accepted a connection.
std::string local_ip(const socket_descriptor& accepted) {
  socket_address result{.size = sizeof(sockaddr_storage)};
  REQUIRE(getsockname(accepted.get(), reinterpret_cast<sockaddr*>(&result.bytes),
                      &result.size)
          == 0);
  return ip_of(result);
}

bool is_readable(int socket) {
  pollfd state{.fd = socket, .events = POLLIN, .revents = 0};
  return poll(&state, 1, 5000) > 0;
}

} // namespace

TEST_CASE("each address of a host is tried until one answers", "[links]") {
  auto server = listen_at({"127.0.0.3", 0});
  REQUIRE(server);
  const addresses host{of_no_family(), address("127.0.0.2", server->port()),
                       address("127.0.0.3", server->port()),
                       address("127.0.0.4", server->port())};
  const auto socket = connect_to({"host", server->port()}, host, 5s);
  REQUIRE(socket);
  CHECK(local_ip(server->accept()) == "127.0.0.3");
}

TEST_CASE("a host that does not answer is named with the reason of each address",
          "[links]") {
  const auto port = listen_at({"127.0.0.2", 0})->port(); // closed again
  const auto at = "host:" + std::to_string(port);
  const auto none =
    connect_to({"host", port}, {of_no_family(), address("127.0.0.2", port)}, 5s);
  REQUIRE_FALSE(none);
  CHECK(none.error()
        == "cannot reach a node at " + at + ": " + no_family
             + ", 127.0.0.2: Connection refused (start a node there: ./troupe node "
               "--listen "
             + at + ")");
  const auto only = connect_to({"127.0.0.2", port}, 5s);
  REQUIRE_FALSE(only);
  CHECK(only.error().starts_with("cannot reach a node at 127.0.0.2:"
                                 + std::to_string(port) + ": Connection refused ("));
}

TEST_CASE("a server listens at all addresses that its machine has", "[links]") {
  auto server = listening_sockets::listen(
    {"host", 0}, {of_no_family(), address("127.0.0.2", 0), address("127.0.0.3", 0),
                  address("192.0.2.1", 0)});
  REQUIRE(server);
  CHECK(server->addresses() == std::vector<std::string>{"127.0.0.2", "127.0.0.3"});
  CHECK(server->absent()
        == std::vector<std::string>{no_family,
                                    "192.0.2.1: Cannot assign requested address"});
  for (const std::string ip : {"127.0.0.3", "127.0.0.2"}) {
    const auto client = connect_to({ip, server->port()}, 5s);
    REQUIRE(client);
    CHECK(is_readable(server->descriptor()));
    CHECK(local_ip(server->accept()) == ip);
  }
  CHECK_FALSE(server->accept());
}

TEST_CASE("no address of a server waits until another has no connections", "[links]") {
  auto server = listening_sockets::listen(
    {"host", 0}, {address("127.0.0.2", 0), address("127.0.0.3", 0)});
  REQUIRE(server);
  std::vector<socket_descriptor> clients;
  for (const auto* const ip : {"127.0.0.2", "127.0.0.2", "127.0.0.2", "127.0.0.3"})
    clients.push_back(std::move(*connect_to({ip, server->port()}, 5s)));
  REQUIRE(is_readable(server->descriptor()));
  std::vector<std::string> order;
  for (int i = 0; i < 4; ++i)
    order.push_back(local_ip(server->accept()));
  CHECK(
    order
    == std::vector<std::string>{"127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.2"});
}

TEST_CASE("a server that misses an address says which, and why", "[links]") {
  const auto other = listen_at({"127.0.0.3", 0});
  const auto at = "host:" + std::to_string(other->port());
  const auto taken = listening_sockets::listen(
    {"host", other->port()}, {address("127.0.0.2", 0), address("127.0.0.3", 0)});
  REQUIRE_FALSE(taken);
  CHECK(taken.error()
        == "cannot listen at " + at + ": 127.0.0.3: Address already in use");
  const auto none = listening_sockets::listen({"host", 4242}, {of_no_family()});
  REQUIRE_FALSE(none);
  CHECK(none.error() == "cannot listen at host:4242: " + no_family);
}

TEST_CASE("IPv4 and IPv6 have the same port", "[links]") {
  if (!listen_at({"::1", 0}))
    SKIP("this machine has no IPv6");
  for (const auto& [v4, v6] :
       {std::pair{"127.0.0.1", "::1"}, std::pair{"0.0.0.0", "::"}}) {
    auto server =
      listening_sockets::listen({"host", 0}, {address(v6, 0), address(v4, 0)});
    REQUIRE(server);
    CHECK(server->absent().empty());
    for (const auto* const ip : {"127.0.0.1", "::1"}) {
      REQUIRE(connect_to({ip, server->port()}, 5s));
      CHECK(local_ip(server->accept()) == ip);
    }
  }
}

} // namespace troupe::host_addresses_test
