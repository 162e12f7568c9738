// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/tensor_links.hpp"

#include "kernels/threads.hpp"

#include <poll.h>
#include <unistd.h>

#include <exception>
#include <new>
#include <utility>

namespace troupe {

tensor_links::tensor_links(session_id session, std::uint64_t most_payload_bytes,
                           frame_receiver& receiver)
  : session_(session),
    most_payload_bytes_(most_payload_bytes),
    receiver_(receiver),
    thread_(start_thread(1, [this] { work(); })) {
  // nop
}

tensor_links::~tensor_links() {
  close();
}

void tensor_links::close() {
  {
    const std::lock_guard guard{lock_};
    stopping_ = true;
  }
  wakes_.wake();
  if (thread_.joinable())
    thread_.join();
  for (const auto& [peer, link] : links_)
    stale_ += link.stale();
  links_.clear();
  orders_.clear();
}

void tensor_links::add(int peer, std::unique_ptr<byte_stream> stream) {
  {
    const std::lock_guard guard{lock_};
    added_.emplace_back(peer, std::move(stream));
  }
  wakes_.wake();
}

void tensor_links::send(int peer, outgoing_frame frame) {
  bool wake = false;
  {
    const std::lock_guard guard{lock_};
    if (stopping_)
      return;
    orders_.emplace_back(peer, std::move(frame));
    wake = !std::exchange(awake_, true);
  }
  if (wake)
    wakes_.wake();
}

void tensor_links::take_orders() {
  std::vector<std::pair<int, std::unique_ptr<byte_stream>>> added;
  std::vector<std::pair<int, outgoing_frame>> orders;
  {
    const std::lock_guard guard{lock_};
    added.swap(added_);
    orders.swap(orders_);
    awake_ = false;
  }
  for (auto& [peer, stream] : added) {
    const auto [link, is_new] = links_.try_emplace(
      peer, peer, std::move(stream), session_, most_payload_bytes_, receiver_);
    if (!is_new)
      continue; // a second link of a peer is ignored
    if (const auto why = move(link->second, true); !why.empty())
      lose(peer, why);
  }
  for (auto& [peer, frame] : orders)
    if (const auto to = links_.find(peer); to != links_.end())
      to->second.add(std::move(frame));
}

void tensor_links::lose(int peer, const std::string& why) {
  const auto gone = links_.find(peer);
  stale_ += gone->second.stale();
  links_.erase(gone);
  receiver_.lost(peer, why);
}

/// Reads and writes a link. Returns the reason why the link has ended; empty if the
/// link has not ended.
std::string tensor_links::move(tensor_link& link, bool readable) {
  const std::lock_guard guard{at_work_};
  try {
    const auto moved_before = link.moved();
    auto why = link.write();
    if (why.empty() && readable)
      why = link.read();
    moved_ += link.moved() - moved_before;
    return why;
  } catch (const std::bad_alloc&) {
    return "out of memory for a message from it";
  } catch (const std::exception& error) {
    return error.what();
  }
}

void tensor_links::work() {
  std::vector<pollfd> waits;
  std::vector<int> peers;
  for (;;) {
    waits.assign(1, {.fd = wakes_.descriptor(), .events = POLLIN, .revents = 0});
    peers.clear();
    for (auto& [peer, link] : links_) {
      const short events = link.wants_to_write() ? POLLIN | POLLOUT : POLLIN;
      waits.push_back({.fd = link.socket(), .events = events, .revents = 0});
      peers.push_back(peer);
    }
    (void)poll(waits.data(), waits.size(), -1);
    wakes_.reset();
    {
      const std::lock_guard guard{lock_};
      if (stopping_)
        return;
    }
    take_orders();
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const bool readable = (waits[i + 1].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
      const auto link = links_.find(peers[i]);
      const auto why =
        link != links_.end() ? move(link->second, readable) : std::string{};
      if (!why.empty())
        lose(peers[i], why);
    }
  }
}

} // namespace troupe
