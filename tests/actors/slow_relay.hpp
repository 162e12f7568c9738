// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/links/node_address.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {

/// Changes the bytes that one side of a connection has sent, piece by piece: bytes that
/// the function does not return are held back.
using byte_changer = std::function<std::vector<char>(std::vector<char>)>;

/// A relay between a node and the processes that connect to the node: forwards every
/// byte after a delay.
class slow_relay {
public:
  /// \param change makes the function that changes each direction of a connection;
  /// empty: no change
  slow_relay(const node_address& to, std::chrono::milliseconds delay,
             std::function<byte_changer(bool to_node)> change = {})
    : to_(to),
      delay_(delay),
      change_(std::move(change)),
      door_(*listen_at({"127.0.0.1", 0})) {
    doorman_ = std::thread{[this] { open_door(); }};
  }

  ~slow_relay() {
    stop_ = true;
    doorman_.join();
    for (auto& one : talks_)
      one.join();
  }
  slow_relay(const slow_relay&) = delete;
  slow_relay& operator=(const slow_relay&) = delete;

  std::uint16_t port() const { return door_.port(); }

private:
  /// Waits for bytes to read; false if the relay is stopped first.
  bool hears(int socket) const {
    pollfd one{.fd = socket, .events = POLLIN, .revents = 0};
    while (!stop_)
      if (poll(&one, 1, 20) > 0)
        return true;
    return false;
  }

  void open_door() {
    while (hears(door_.descriptor())) {
      auto guest = std::make_shared<socket_descriptor>(door_.accept());
      auto host = connect_to(to_, std::chrono::seconds{5});
      if (guest->get() < 0 || !host)
        continue;
      const auto other = std::make_shared<socket_descriptor>(std::move(*host));
      talks_.emplace_back([=, this] { pass_on(*guest, *other, true); });
      talks_.emplace_back([=, this] { pass_on(*other, *guest, false); });
    }
  }

  void pass_on(const socket_descriptor& from, const socket_descriptor& to,
               bool to_node) const {
    std::array<char, 1 << 16> some{};
    const auto change = change_ ? change_(to_node) : byte_changer{};
    while (hears(from.get())) {
      const auto count = recv(from.get(), some.data(), some.size(), 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR))
        continue;
      std::this_thread::sleep_for(delay_);
      if (count <= 0)
        break;
      std::vector<char> bytes{some.begin(), some.begin() + count};
      if (change)
        bytes = change(std::move(bytes));
      for (std::size_t at = 0; at < bytes.size();) {
        const auto sent =
          send(to.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
          return;
        at += static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
      }
    }
    shutdown(to.get(), SHUT_WR);
  }

  node_address to_;
  std::chrono::milliseconds delay_;
  std::function<byte_changer(bool)> change_;
  listening_sockets door_;
  std::atomic<bool> stop_ = false;
  std::thread doorman_;
  std::list<std::thread> talks_;
};

/// Puts a relay before each of some nodes, and replaces the nodes' addresses by the
/// relays'.
inline std::vector<std::unique_ptr<slow_relay>>
relays_before(std::vector<node_address>& nodes, std::chrono::milliseconds delay,
              const std::function<byte_changer(bool to_node)>& change = {}) {
  std::vector<std::unique_ptr<slow_relay>> result;
  for (auto& node : nodes) {
    result.push_back(std::make_unique<slow_relay>(node, delay, change));
    node.port = result.back()->port();
  }
  return result;
}

} // namespace troupe
