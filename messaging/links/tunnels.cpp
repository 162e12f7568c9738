// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/tunnels.hpp"

#include "kernels/threads.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t lane_bytes = 64 << 10;

bool has_ended(const stream_progress& p) {
  return p.outcome == stream_progress::state::closed
         || p.outcome == stream_progress::state::failed;
}

} // namespace

tunnels::tunnels() : thread_(start_thread(1, [this] { work(); })) {
  // nop
}

tunnels::~tunnels() {
  {
    const std::lock_guard guard{lock_};
    stopping_ = true;
  }
  wakes_.wake();
  thread_.join();
}

socket_descriptor tunnels::open(std::unique_ptr<byte_stream> stream) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error(std::string{"cannot open a socket: "}
                             + std::strerror(errno));
  socket_descriptor result{ends[0]};
  tunnel next{std::move(stream), plain_stream(socket_descriptor{ends[1]}), {}, {}};
  {
    const std::lock_guard guard{lock_};
    added_.push_back(std::move(next));
  }
  wakes_.wake();
  return result;
}

/// Passes on all bytes that need no wait. Returns false if either side has ended.
bool tunnels::pass(byte_stream& from, byte_stream& to, lane& pending) try {
  using state = stream_progress::state;
  for (;;) {
    while (!pending.empty()) {
      const iovec rest{pending.bytes.data() + pending.sent,
                       pending.bytes.size() - pending.sent};
      const auto moved = to.write({&rest, 1});
      pending.sent += moved.bytes;
      if (moved.outcome != state::moved)
        return !has_ended(moved);
    }
    pending.sent = 0;
    pending.bytes.resize(lane_bytes);
    const auto moved = from.read(pending.bytes);
    pending.bytes.resize(moved.bytes);
    if (moved.outcome != state::moved)
      return !has_ended(moved);
  }
} catch (const std::exception&) { // out of memory
  return false;
}

void tunnels::work() {
  std::vector<pollfd> waits;
  for (;;) {
    waits.assign(1, {.fd = wakes_.descriptor(), .events = POLLIN, .revents = 0});
    for (const auto& open_tunnel : open_) {
      const auto events = [](const lane& from, const lane& to) {
        return static_cast<short>((from.empty() ? POLLIN : 0)
                                  | (to.empty() ? 0 : POLLOUT));
      };
      waits.push_back({.fd = open_tunnel.outside->socket(),
                       .events = events(open_tunnel.in, open_tunnel.out),
                       .revents = 0});
      waits.push_back({.fd = open_tunnel.inside->socket(),
                       .events = events(open_tunnel.out, open_tunnel.in),
                       .revents = 0});
    }
    (void)poll(waits.data(), waits.size(), -1);
    wakes_.reset();
    {
      const std::lock_guard guard{lock_};
      if (stopping_)
        return;
      for (auto& added : added_)
        open_.push_back(std::move(added));
      added_.clear();
    }
    std::erase_if(open_, [](tunnel& open_tunnel) {
      return !pass(*open_tunnel.outside, *open_tunnel.inside, open_tunnel.in)
             || !pass(*open_tunnel.inside, *open_tunnel.outside, open_tunnel.out);
    });
  }
}

} // namespace troupe
