// SPDX-License-Identifier: BSD-3-Clause
// Communicators of GPUs that this machine imitates. A transfer is moved when the
// streams of both members have come to the transfer. So streams stall and wait for each
// other, as with NCCL. Nothing is buffered on the way, because a buffer would hide some
// stalls.

#include "kernels/cuda/communicator.hpp"

#include "kernels/cuda/on_host/launch_registry.hpp"
#include "kernels/cuda/on_host/stream_queue.hpp"
#include "kernels/switched_off.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::cuda {

namespace {

std::mutex groups_lock; // guards the variables and groups below

struct call;

/// A transfer that a stream has come to, while the counterpart is missing.
struct posted {
  call* owner;
  transfer request;
};

struct group {
  int number = 0;
  std::vector<CUstream_st*> members; // null: not joined yet, or gone
  int joined = 0;
  // Transfers that wait for the counterpart, by sender and receiver.
  std::map<std::pair<int, int>, std::deque<posted>> sends, receives;
};

std::map<group_id, std::shared_ptr<group>> groups;
int groups_made = 0;
std::atomic<int> before_broken = -1; // exchanges until one fails; negative: none

/// An exchange of one member.
struct call : public shared_launch {
  call(std::shared_ptr<group> joined_group, int member_index, int counted,
       std::vector<transfer> moved, const std::atomic<bool>& was_aborted)
    : in(std::move(joined_group)),
      member(member_index),
      number(counted),
      transfers(std::move(moved)),
      left(transfers.size()),
      aborted(was_aborted),
      issued(on_host::next_instant()) {
    // nop
  }

  ~call() override {
    const std::lock_guard guard{groups_lock};
    for (auto* const side : {&in->sends, &in->receives})
      for (auto& [peers, waiting] : *side)
        std::erase_if(waiting, [this](const posted& p) { return p.owner == this; });
  }

  void arrive() override {
    const std::lock_guard guard{groups_lock};
    if (before_broken >= 0 && before_broken-- == 0)
      throw std::runtime_error{name() + " has lost its GPU"};
    for (const auto& entry : transfers) {
      const bool gives = entry.direction == transfer::way::send;
      const auto peers =
        gives ? std::pair{member, entry.peer} : std::pair{entry.peer, member};
      (gives ? in->sends : in->receives)[peers].push_back({this, entry});
      meet(in->sends[peers], in->receives[peers]);
    }
  }

  bool done() override {
    const std::lock_guard guard{groups_lock};
    if (!error.empty())
      throw std::runtime_error{error};
    return left == 0 || aborted; // after an abort the stream continues, as with NCCL
  }

  wait waits_for() override {
    const std::lock_guard guard{groups_lock};
    for (const auto* const side : {&in->sends, &in->receives})
      for (const auto& [peers, waiting] : *side)
        for (const auto& p : waiting)
          if (p.owner == this) {
            const int peer = p.request.peer;
            const auto* const stream = in->members[static_cast<std::size_t>(peer)];
            return {stream != nullptr ? stream->number() : 0,
                    name() + " waits for member " + std::to_string(peer)};
          }
    return {0, name() + " is over"};
  }

  /// Moves the first transfers of both sides, if both sides have one.
  static void meet(std::deque<posted>& sends, std::deque<posted>& receives) {
    if (sends.empty() || receives.empty())
      return;
    const auto from = sends.front(), to = receives.front();
    sends.pop_front();
    receives.pop_front();
    if (from.request.count != to.request.count)
      from.owner->error = to.owner->error =
        from.owner->name() + " gives " + std::to_string(from.request.count)
        + " values, and " + to.owner->name() + " takes "
        + std::to_string(to.request.count);
    else
      move(from, to);
    --from.owner->left;
    --to.owner->left;
  }

  static void move(const posted& from, const posted& to) {
    const auto bytes = from.request.count * std::int64_t{sizeof(float)};
    using enum on_host::access_kind;
    try {
      from.owner->run(
        [&] { on_host::watch_library(from.request.values, bytes, read); });
      to.owner->run([&] {
        on_host::watch_library(to.request.values, bytes, write);
        std::memcpy(to.request.values, from.request.values,
                    static_cast<std::size_t>(bytes));
      });
    } catch (const std::exception& race) {
      from.owner->error = to.owner->error = race.what();
    }
  }

  void run(const std::function<void()>& work) const {
    on_host::run_on_stream(in->members[static_cast<std::size_t>(member)]->number(),
                           issued, name(), work);
  }

  std::string name() const {
    return "call " + std::to_string(number) + " of member " + std::to_string(member)
           + " of group " + std::to_string(in->number);
  }

  std::shared_ptr<group> in;
  int member;
  int number;
  std::vector<transfer> transfers;
  std::size_t left; // transfers that are not done
  const std::atomic<bool>& aborted;
  std::int64_t issued;
  std::string error;
};

class communicator_on_host : public communicator {
public:
  communicator_on_host(stream& gpu_stream, const group_member& as,
                       const std::atomic<bool>& ended)
    : launches_(gpu_stream), queue_(*gpu_stream.handle()), member_(as.member) {
    {
      const std::lock_guard guard{groups_lock};
      in_ = groups.at(as.group);
      in_->members.resize(static_cast<std::size_t>(as.members));
      in_->members[static_cast<std::size_t>(as.member)] = &queue_;
      if (++in_->joined == as.members)
        groups.erase(as.group);
    }
    while (!all_are_there()) {
      if (ended) {
        leave();
        throw std::runtime_error{"the group of GPUs has been ended"};
      }
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
  }

  /// Aborts, and waits until all exchanges on the stream have ended.
  ~communicator_on_host() override {
    communicator_on_host::abort();
    try {
      queue_.wait();
    } catch (...) { // NOLINT(bugprone-empty-catch)
    }
    leave();
  }

  communicator_on_host(const communicator_on_host&) = delete;
  communicator_on_host& operator=(const communicator_on_host&) = delete;

  void exchange(std::span<const transfer> transfers) override {
    launches_.launch_captured();
    queue_.enqueue(std::make_shared<call>(
      in_, member_, calls_++, std::vector<transfer>{transfers.begin(), transfers.end()},
      aborted_));
  }

  void abort() noexcept override { aborted_ = true; }

  void check() override {
    if (aborted_)
      throw std::runtime_error{"the group of GPUs has been ended"};
  }

private:
  void leave() {
    const std::lock_guard guard{groups_lock};
    in_->members[static_cast<std::size_t>(member_)] = nullptr;
  }

  bool all_are_there() const {
    const std::lock_guard guard{groups_lock};
    return in_->joined == static_cast<int>(in_->members.size());
  }

  stream& launches_;
  CUstream_st& queue_;
  int member_;
  std::shared_ptr<group> in_;
  int calls_ = 0;
  std::atomic<bool> aborted_ = false;
};

} // namespace

std::string absence_of_communicators() {
  return switched_off("TROUPE_NCCL") ? "TROUPE_NCCL says off" : "";
}

group_id new_group() {
  const std::lock_guard guard{groups_lock};
  group_id result{};
  const int number = ++groups_made;
  std::memcpy(result.data(), &number, sizeof number);
  groups[result] = std::make_shared<group>();
  groups[result]->number = number;
  return result;
}

std::unique_ptr<communicator> join_group(stream& gpu_stream, const group_member& as,
                                         const std::atomic<bool>& ended) {
  return std::make_unique<communicator_on_host>(gpu_stream, as, ended);
}

} // namespace troupe::cuda

namespace troupe::on_host {

void break_exchange(int number) {
  cuda::before_broken = number;
}

} // namespace troupe::on_host
