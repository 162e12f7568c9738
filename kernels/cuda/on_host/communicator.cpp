// SPDX-License-Identifier: BSD-3-Clause
// Communicators of GPUs that this machine imitates. A transfer is moved when the
// streams of both members have come to the transfer. So streams stall and wait for each
// other, as with NCCL. Nothing is buffered on the way, because a buffer would hide some
// stalls.

#include "kernels/cuda/communicator.hpp"

#include "kernels/cuda/on_host/onlooker.hpp"
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

std::mutex all; // guards the variables and groups below

struct call;

/// A transfer that a stream has come to, while the counterpart is missing.
struct posted {
  call* of;
  transfer what;
};

struct group {
  int number = 0;
  std::vector<CUstream_st*> members; // null: not joined yet, or gone
  int joined = 0;
  // Transfers that wait for the counterpart, by sender and receiver.
  std::map<std::pair<int, int>, std::deque<posted>> given, taken;
};

std::map<group_id, std::shared_ptr<group>> groups;
int made = 0;
std::atomic<int> before_broken = -1; // exchanges until one fails; negative: none

/// An exchange of one member.
struct call : public shared_launch {
  call(std::shared_ptr<group> of, int by, int counted, std::vector<transfer> moved,
       const std::atomic<bool>& was_aborted)
    : in(std::move(of)),
      member(by),
      number(counted),
      transfers(std::move(moved)),
      left(transfers.size()),
      aborted(was_aborted),
      issued(on_host::next_instant()) {
    // nop
  }

  ~call() override {
    const std::lock_guard guard{all};
    for (auto* const side : {&in->given, &in->taken})
      for (auto& [who, waiting] : *side)
        std::erase_if(waiting, [this](const posted& p) { return p.of == this; });
  }

  void arrive() override {
    const std::lock_guard guard{all};
    if (before_broken >= 0 && before_broken-- == 0)
      throw std::runtime_error{name() + " has lost its GPU"};
    for (const auto& one : transfers) {
      const bool gives = one.how == transfer::way::send;
      const auto who =
        gives ? std::pair{member, one.other} : std::pair{one.other, member};
      (gives ? in->given : in->taken)[who].push_back({this, one});
      meet(in->given[who], in->taken[who]);
    }
  }

  bool over() override {
    const std::lock_guard guard{all};
    if (!wrong.empty())
      throw std::runtime_error{wrong};
    return left == 0 || aborted; // after an abort the stream continues, as with NCCL
  }

  wait waits_for() override {
    const std::lock_guard guard{all};
    for (const auto* const side : {&in->given, &in->taken})
      for (const auto& [who, waiting] : *side)
        for (const auto& p : waiting)
          if (p.of == this) {
            const int other = p.what.other;
            const auto* const stream = in->members[static_cast<std::size_t>(other)];
            return {stream != nullptr ? stream->number() : 0,
                    name() + " waits for member " + std::to_string(other)};
          }
    return {0, name() + " is over"};
  }

  /// Moves the first transfers of both sides, if both sides have one.
  static void meet(std::deque<posted>& given, std::deque<posted>& taken) {
    if (given.empty() || taken.empty())
      return;
    const auto from = given.front(), to = taken.front();
    given.pop_front();
    taken.pop_front();
    if (from.what.count != to.what.count)
      from.of->wrong = to.of->wrong =
        from.of->name() + " gives " + std::to_string(from.what.count) + " values, and "
        + to.of->name() + " takes " + std::to_string(to.what.count);
    else
      move(from, to);
    --from.of->left;
    --to.of->left;
  }

  static void move(const posted& from, const posted& to) {
    const auto bytes = from.what.count * std::int64_t{sizeof(float)};
    using enum on_host::access_kind;
    try {
      from.of->run([&] { on_host::watch_library(from.what.values, bytes, read); });
      to.of->run([&] {
        on_host::watch_library(to.what.values, bytes, write);
        std::memcpy(to.what.values, from.what.values, static_cast<std::size_t>(bytes));
      });
    } catch (const std::exception& race) {
      from.of->wrong = to.of->wrong = race.what();
    }
  }

  void run(const std::function<void()>& what) const {
    on_host::run_on_stream(in->members[static_cast<std::size_t>(member)]->number(),
                           issued, name(), what);
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
  std::string wrong;
};

class communicator_on_host : public communicator {
public:
  communicator_on_host(stream& on, const membership& as, const std::atomic<bool>& ended)
    : launches_(on), on_(*on.on()), member_(as.member) {
    {
      const std::lock_guard guard{all};
      in_ = groups.at(as.of);
      in_->members.resize(static_cast<std::size_t>(as.members));
      in_->members[static_cast<std::size_t>(as.member)] = &on_;
      if (++in_->joined == as.members)
        groups.erase(as.of);
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
      on_.wait();
    } catch (...) { // NOLINT(bugprone-empty-catch)
    }
    leave();
  }

  communicator_on_host(const communicator_on_host&) = delete;
  communicator_on_host& operator=(const communicator_on_host&) = delete;

  void exchange(std::span<const transfer> what) override {
    launches_.launch_deferred();
    on_.enqueue(std::make_shared<call>(in_, member_, calls_++,
                                       std::vector<transfer>{what.begin(), what.end()},
                                       aborted_));
  }

  void abort() noexcept override { aborted_ = true; }

  void check() override {
    if (aborted_)
      throw std::runtime_error{"the group of GPUs has been ended"};
  }

private:
  void leave() {
    const std::lock_guard guard{all};
    in_->members[static_cast<std::size_t>(member_)] = nullptr;
  }

  bool all_are_there() const {
    const std::lock_guard guard{all};
    return in_->joined == static_cast<int>(in_->members.size());
  }

  stream& launches_;
  CUstream_st& on_;
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
  const std::lock_guard guard{all};
  group_id result{};
  const int number = ++made;
  std::memcpy(result.data(), &number, sizeof number);
  groups[result] = std::make_shared<group>();
  groups[result]->number = number;
  return result;
}

std::unique_ptr<communicator> join_group(stream& on, const membership& as,
                                         const std::atomic<bool>& ended) {
  return std::make_unique<communicator_on_host>(on, as, ended);
}

} // namespace troupe::cuda

namespace troupe::on_host {

void break_exchange(int number) {
  cuda::before_broken = number;
}

} // namespace troupe::on_host
