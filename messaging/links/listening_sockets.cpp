// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/listening_sockets.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe {

namespace {

/// A socket that listens at an address. Returns no socket on failure; errno then has
/// the reason.
/// \param has_v4 true if other sockets have the port for IPv4
socket_descriptor listening_socket(const socket_address& a, bool has_v4) {
  constexpr int waiting = 1024;
  const int enabled = 1;
  auto result = open_socket(a);
  const bool listens =
    result
    && setsockopt(result.get(), SOL_SOCKET, SO_REUSEADDR, &enabled, sizeof enabled) == 0
    && (a.family() != AF_INET6 || !has_v4
        || setsockopt(result.get(), IPPROTO_IPV6, IPV6_V6ONLY, &enabled, sizeof enabled)
             == 0)
    && bind(result.get(), a.data(), a.size) == 0
    && ::listen(result.get(), waiting) == 0;
  return listens ? std::move(result) : socket_descriptor{};
}

/// The port that the system has assigned to a socket; 0 on failure.
std::uint16_t port_given(const socket_descriptor& socket) {
  socket_address result{.size = sizeof result.bytes};
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&result.bytes),
                  &result.size)
      != 0)
    return 0;
  return port_of(result);
}

bool is_of_another_machine(int code) {
  return code == EAFNOSUPPORT || code == EADDRNOTAVAIL;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string result;
  for (const auto& part : parts)
    result += (result.empty() ? "" : ", ") + part;
  return result;
}

} // namespace

tl::expected<listening_sockets, listening_sockets::mistake>
listening_sockets::open(const std::vector<socket_address>& candidates,
                        std::uint16_t port) {
  using problem = tl::unexpected<mistake>;
  const bool has_v4 =
    std::ranges::count(candidates, int{AF_INET}, &socket_address::family) > 0;
  listening_sockets result;
  result.port_ = port;
  result.readiness_ = socket_descriptor{epoll_create1(EPOLL_CLOEXEC)};
  int last = errno;
  for (const auto& a : candidates) {
    auto socket = listening_socket(with_port(a, result.port_), has_v4);
    epoll_event event{.events = EPOLLIN, .data = {}};
    if (socket
        && epoll_ctl(result.readiness_.get(), EPOLL_CTL_ADD, socket.get(), &event)
             == 0) {
      result.port_ = port_given(socket);
      result.sockets_.push_back(std::move(socket));
      result.addresses_.push_back(ip_of(a));
      continue;
    }
    last = errno;
    result.absent_.push_back(ip_of(a) + ": " + std::strerror(last));
    if (!is_of_another_machine(last))
      return problem{mistake{last, result.absent_.back()}};
  }
  if (result.sockets_.empty())
    return problem{mistake{last, joined(result.absent_)}};
  return result;
}

tl::expected<listening_sockets, std::string>
listening_sockets::listen(const node_address& name,
                          const std::vector<socket_address>& candidates) {
  // a port that is free at one address may be in use at another
  constexpr int most_tries = 16;
  for (int i = 1;; ++i) {
    auto result = open(candidates, name.port);
    if (result)
      return std::move(*result);
    if (name.port != 0 || result.error().code != EADDRINUSE || i == most_tries)
      return tl::unexpected{"cannot listen at " + to_string(name) + ": "
                            + result.error().sentence};
  }
}

socket_descriptor listening_sockets::accept() {
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    const auto& socket = sockets_[next_];
    next_ = (next_ + 1) % sockets_.size();
    socket_descriptor result{
      accept4(socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (result)
      send_at_once(result);
    if (result || errno == EMFILE || errno == ENFILE)
      return result;
  }
  return {};
}

tl::expected<listening_sockets, std::string> listen_at(const node_address& a) {
  const auto candidates = addresses_of(a.host, a.port, true);
  if (!candidates)
    return tl::unexpected{to_string(a) + ": " + candidates.error()};
  return listening_sockets::listen(a, *candidates);
}

} // namespace troupe
