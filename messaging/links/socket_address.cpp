// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/socket_address.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>

namespace troupe {

namespace {

// Both kinds of address have the port at the same offset.
constexpr std::size_t port_offset = offsetof(sockaddr_in, sin_port);
static_assert(port_offset == offsetof(sockaddr_in6, sin6_port));

bool are_equal(const socket_address& a, const socket_address& b) {
  return a.size == b.size && std::memcmp(&a.bytes, &b.bytes, a.size) == 0;
}

} // namespace

tl::expected<std::vector<socket_address>, std::string>
addresses_of(const std::string& host, std::uint16_t port, bool listens) {
  const addrinfo wanted{.ai_flags = (listens ? AI_PASSIVE : 0) | AI_NUMERICSERV,
                        .ai_family = AF_UNSPEC,
                        .ai_socktype = SOCK_STREAM};
  addrinfo* first = nullptr;
  if (const int code =
        getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &first))
    return tl::unexpected{std::string{"no machine is known by that name ("}
                          + gai_strerror(code) + ")"};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> entries{first,
                                                                   &freeaddrinfo};
  std::vector<socket_address> result;
  for (const auto* entry = entries.get(); entry != nullptr; entry = entry->ai_next) {
    socket_address next{.size = entry->ai_addrlen};
    std::memcpy(&next.bytes, entry->ai_addr, entry->ai_addrlen);
    if (std::ranges::none_of(
          result, [&](const socket_address& a) { return are_equal(a, next); }))
      result.push_back(next);
  }
  return result;
}

std::string ip_of(const socket_address& a) {
  std::array<char, NI_MAXHOST> text{};
  const int code =
    getnameinfo(a.data(), a.size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return code == 0 ? text.data() : "an address of family " + std::to_string(a.family());
}

std::uint16_t port_of(const socket_address& a) {
  std::uint16_t result = 0;
  std::memcpy(&result, reinterpret_cast<const char*>(&a.bytes) + port_offset,
              sizeof result);
  return ntohs(result);
}

socket_address with_port(socket_address a, std::uint16_t port) {
  const auto bytes = htons(port);
  std::memcpy(reinterpret_cast<char*>(&a.bytes) + port_offset, &bytes, sizeof bytes);
  return a;
}

bool is_loopback(const socket_address& a) {
  if (a.family() == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &a.bytes, sizeof v4);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &a.bytes, sizeof v6);
  return a.family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

socket_descriptor open_socket(const socket_address& a) {
  return socket_descriptor{
    ::socket(a.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
}

void send_at_once(const socket_descriptor& socket) {
  const int enabled = 1;
  (void)setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &enabled, sizeof enabled);
}

} // namespace troupe
