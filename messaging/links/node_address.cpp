// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/node_address.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

namespace troupe {

namespace {

using problem = tl::unexpected<std::string>;
using found_addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

tl::expected<found_addresses, std::string> find(const node_address& a, int flags) {
  const addrinfo wanted{.ai_flags = flags | AI_NUMERICSERV,
                        .ai_family = AF_UNSPEC,
                        .ai_socktype = SOCK_STREAM};
  addrinfo* all = nullptr;
  const auto port = std::to_string(a.port);
  if (const int wrong = getaddrinfo(a.host.c_str(), port.c_str(), &wanted, &all))
    return problem{to_string(a) + ": no machine is known by that name ("
                   + gai_strerror(wrong) + ")"};
  return found_addresses{all, &freeaddrinfo};
}

bool is_loopback(const sockaddr* a) {
  if (a->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, a, sizeof v4);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, a, sizeof v6);
  return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

socket_descriptor open_socket(const addrinfo& a) {
  return socket_descriptor{
    ::socket(a.ai_family, a.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a.ai_protocol)};
}

void send_at_once(const socket_descriptor& socket) {
  const int on = 1;
  (void)setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// 0, or why it is not connected.
int finish_connecting(const socket_descriptor& socket,
                      std::chrono::milliseconds patience) {
  pollfd waits{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  const int ready = poll(&waits, 1, static_cast<int>(patience.count()));
  if (ready == 0)
    return ETIMEDOUT;
  int why = errno;
  socklen_t size = sizeof why;
  if (ready > 0)
    (void)getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &why, &size);
  return why;
}

} // namespace

tl::expected<node_address, std::string> parse_address(const std::string& text) {
  const problem wrong{"'" + text
                      + "' is no address of a node: say HOST:PORT, as 127.0.0.1:4242"};
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return wrong;
  auto host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string::npos)
    return wrong;
  node_address result{host, 0};
  const auto *const first = text.data() + colon + 1, *const last =
                                                       text.data() + text.size();
  const auto [end, fault] = std::from_chars(first, last, result.port);
  if (host.empty() || host.size() > 255 || fault != std::errc{} || end != last)
    return wrong;
  return result;
}

std::string to_string(const node_address& a) {
  const bool v6 = a.host.find(':') != std::string::npos;
  return (v6 ? "[" + a.host + "]" : a.host) + ":" + std::to_string(a.port);
}

tl::expected<bool, std::string> is_loopback(const node_address& a) {
  const auto all = find(a, 0);
  if (!all)
    return problem{all.error()};
  for (const auto* one = all->get(); one != nullptr; one = one->ai_next)
    if (!is_loopback(one->ai_addr))
      return false;
  return true;
}

tl::expected<listener_socket, std::string> listen_at(const node_address& a) {
  const auto all = find(a, AI_PASSIVE);
  if (!all)
    return problem{all.error()};
  const auto& first = **all;
  auto socket = open_socket(first);
  const int on = 1;
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  auto* const place = reinterpret_cast<sockaddr*>(&own);
  constexpr int waiting = 1024;
  if (!socket || setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0
      || bind(socket.get(), first.ai_addr, first.ai_addrlen) != 0
      || listen(socket.get(), waiting) != 0
      || getsockname(socket.get(), place, &size) != 0)
    return problem{"cannot listen at " + to_string(a) + ": " + std::strerror(errno)};
  std::uint16_t port = 0; // at the same place in both kinds
  std::memcpy(&port,
              reinterpret_cast<const char*>(&own) + offsetof(sockaddr_in, sin_port),
              sizeof port);
  return listener_socket{std::move(socket), ntohs(port)};
}

socket_descriptor accept_from(const socket_descriptor& listener) {
  socket_descriptor result{
    accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
  if (result)
    send_at_once(result);
  return result;
}

tl::expected<socket_descriptor, std::string>
connect_to(const node_address& a, std::chrono::milliseconds patience) {
  const auto all = find(a, 0);
  if (!all)
    return problem{all.error()};
  int why = 0;
  for (const auto* one = all->get(); one != nullptr; one = one->ai_next) {
    auto socket = open_socket(*one);
    if (!socket)
      return problem{"cannot open a socket: " + std::string{std::strerror(errno)}};
    why = connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (why == EINPROGRESS)
      why = finish_connecting(socket, patience);
    if (why == 0) {
      send_at_once(socket);
      return socket;
    }
  }
  return problem{"cannot reach a node at " + to_string(a) + ": " + std::strerror(why)
                 + (why == ECONNREFUSED ? " (start one there: ./troupe node --listen "
                                            + to_string(a) + ")"
                                        : "")};
}

} // namespace troupe
