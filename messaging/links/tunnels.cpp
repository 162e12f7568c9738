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
  return p.how == stream_progress::state::closed
         || p.how == stream_progress::state::failed;
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
bool tunnels::pass(byte_stream& from, byte_stream& to, lane& by) try {
  using state = stream_progress::state;
  for (;;) {
    while (!by.empty()) {
      const iovec rest{by.bytes.data() + by.sent, by.bytes.size() - by.sent};
      const auto moved = to.write({&rest, 1});
      by.sent += moved.bytes;
      if (moved.how != state::moved)
        return !has_ended(moved);
    }
    by.sent = 0;
    by.bytes.resize(lane_bytes);
    const auto moved = from.read(by.bytes);
    by.bytes.resize(moved.bytes);
    if (moved.how != state::moved)
      return !has_ended(moved);
  }
} catch (const std::exception&) { // out of memory
  return false;
}

void tunnels::work() {
  std::vector<pollfd> waits;
  for (;;) {
    waits.assign(1, {.fd = wakes_.descriptor(), .events = POLLIN, .revents = 0});
    for (const auto& one : open_) {
      const auto events = [](const lane& from, const lane& to) {
        return static_cast<short>((from.empty() ? POLLIN : 0)
                                  | (to.empty() ? 0 : POLLOUT));
      };
      waits.push_back(
        {.fd = one.outside->socket(), .events = events(one.in, one.out), .revents = 0});
      waits.push_back(
        {.fd = one.inside->socket(), .events = events(one.out, one.in), .revents = 0});
    }
    (void)poll(waits.data(), waits.size(), -1);
    wakes_.hear();
    {
      const std::lock_guard guard{lock_};
      if (stopping_)
        return;
      for (auto& one : added_)
        open_.push_back(std::move(one));
      added_.clear();
    }
    std::erase_if(open_, [](tunnel& one) {
      return !pass(*one.outside, *one.inside, one.in)
             || !pass(*one.inside, *one.outside, one.out);
    });
  }
}

} // namespace troupe
