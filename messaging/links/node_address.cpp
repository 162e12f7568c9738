// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/node_address.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace troupe {

namespace {

using problem = tl::unexpected<std::string>;
/// Waits for the end of a connection attempt. Returns 0, or the errno of the failure.
int finish_connecting(const socket_descriptor& socket,
                      std::chrono::milliseconds timeout) {
  pollfd waits{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  const int ready = poll(&waits, 1, static_cast<int>(timeout.count()));
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
  const problem error{
    "'" + text
    + "' is no address of a node: say HOST:PORT, for example 127.0.0.1:4242"};
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return error;
  auto host = text.substr(0, colon);
  if (host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string::npos)
    return error;
  node_address result{host, 0};
  const auto *const first = text.data() + colon + 1, *const last =
                                                       text.data() + text.size();
  const auto [end, fault] = std::from_chars(first, last, result.port);
  if (host.empty() || host.size() > 255 || fault != std::errc{} || end != last)
    return error;
  return result;
}

std::string to_string(const node_address& a) {
  const bool v6 = a.host.find(':') != std::string::npos;
  return (v6 ? "[" + a.host + "]" : a.host) + ":" + std::to_string(a.port);
}

tl::expected<bool, std::string> is_loopback(const node_address& a) {
  const auto addresses = addresses_of(a.host, a.port, false);
  if (!addresses)
    return problem{to_string(a) + ": " + addresses.error()};
  return std::ranges::all_of(
    *addresses, [](const socket_address& each) { return is_loopback(each); });
}

tl::expected<socket_descriptor, std::string>
connect_to(const node_address& name, const std::vector<socket_address>& addresses,
           std::chrono::milliseconds timeout) {
  std::string reasons;
  bool is_refused = false;
  for (const auto& a : addresses) {
    auto socket = open_socket(a);
    int code = socket && connect(socket.get(), a.data(), a.size) == 0 ? 0 : errno;
    if (code == EINPROGRESS)
      code = finish_connecting(socket, timeout);
    if (code == 0) {
      send_at_once(socket);
      return socket;
    }
    is_refused = is_refused || code == ECONNREFUSED;
    const auto ip = ip_of(a);
    reasons += (reasons.empty() ? "" : ", ") + (ip == name.host ? "" : ip + ": ")
               + std::strerror(code);
  }
  return problem{"cannot reach a node at " + to_string(name) + ": " + reasons
                 + (is_refused ? " (start a node there: ./troupe node --listen "
                                   + to_string(name) + ")"
                               : "")};
}

tl::expected<socket_descriptor, std::string>
connect_to(const node_address& a, std::chrono::milliseconds timeout) {
  const auto addresses = addresses_of(a.host, a.port, false);
  if (!addresses)
    return problem{to_string(a) + ": " + addresses.error()};
  return connect_to(a, *addresses, timeout);
}

} // namespace troupe
