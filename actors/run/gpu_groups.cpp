// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/gpu_groups.hpp"

#include "kernels/threads.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace troupe {

using namespace std::chrono_literals;

namespace {

constexpr auto patience = 120s; // until all members have met
// for exchanges that are over and not yet reported
constexpr auto patience_at_end = 50ms;

// An edge has fewer blocks: a stage computes while the stage waits for a tensor.
constexpr int blocks_of_group = 16, blocks_of_edge = 4;

bool is_here(const run_plan& plan, position where, const std::vector<int>& here) {
  return std::ranges::find(here, plan.rank_of(where)) != here.end();
}

/// "the gradients of stage 1"
std::string text_of(const exchanging_group& group) {
  const auto& first = group.members.front();
  const auto of = " of stage " + std::to_string(first.stage);
  if (group.is_edge())
    return "what stage " + std::to_string(first.stage) + " gives stage "
           + std::to_string(group.members.back().stage);
  switch (*group.about) {
  case meeting_kind::shards:
    return "the shards" + of;
  case meeting_kind::layers:
    return "the layers" + of;
  case meeting_kind::gathers:
    return "the parameters" + of;
  default:
    return "the gradients" + of;
  }
}

/// "exchanging the gradients of stage 1 with those of other ranks"
std::string deed_of(const exchanging_group& group) {
  return group.is_edge()
           ? "moving " + text_of(group)
           : "exchanging " + text_of(group) + " with those of other ranks";
}

} // namespace

known_groups groups_here(const run_plan& plan) {
  known_groups result;
  for (const int group : groups_on_gpus(plan, gpus_here(plan))) {
    if (result.absence = absence_of_communicators(); !result.absence.empty())
      break;
    result.ids[group] = new_group();
  }
  return result;
}

/// Moves a value between any two members before a run begins, so that all members are
/// connected. Memory is allocated before any member waits for others on a GPU, and
/// freed after all are through. Allocating or freeing may wait for the GPU.
class gpu_groups::trial {
public:
  trial(const processor& by, int member, int members)
    : member_(member), members_(members), given_(by, members), taken_(by, members) {
    for (int other = 0; other < members; ++other)
      given_.data[other] = value(member, other);
  }

  void run(communicator& by, const stream& on) {
    std::vector<transfer> all;
    for (int other = 0; other < members_; ++other)
      if (other != member_) {
        all.push_back({transfer::way::send, other, given_.data + other, 1});
        all.push_back({transfer::way::receive, other, taken_.data + other, 1});
      }
    by.exchange(all);
    on.wait();
    by.check();
    for (int other = 0; other < members_; ++other)
      if (other != member_ && taken_.data[other] != value(other, member_))
        throw std::runtime_error{"GPUs of a group move wrong values"};
  }

private:
  /// Memory that a GPU and this machine reach.
  struct shared_values {
    shared_values(const processor& by, int count)
      : where(memory_of(by)),
        bytes(count * std::int64_t{sizeof(float)}),
        data(static_cast<float*>(where.take(bytes))) {
      // nop
    }
    ~shared_values() { where.give_back(data, bytes); }
    shared_values(const shared_values&) = delete;
    shared_values& operator=(const shared_values&) = delete;

    memory_space& where;
    std::int64_t bytes;
    float* data;
  };

  float value(int from, int to) const {
    return static_cast<float>(from * members_ + to);
  }

  int member_, members_;
  shared_values given_, taken_;
};

struct gpu_groups::end {
  exchanging_group of;
  membership as;
  std::string name;
  occupation& seen;
  stream on;
  std::unique_ptr<trial> first; // until all are through
  std::unique_ptr<communicator> by = nullptr;
  std::unique_ptr<cpu_device> launches = nullptr;
  gpu_group group = {};

  position where() const { return of.members[static_cast<std::size_t>(as.member)]; }
};

/// Members that look for the others of each group, each on a thread. None exchanges
/// before all have joined, as joining may wait for the GPUs.
struct gpu_groups::joining {
  std::mutex lock;
  std::exception_ptr failure;
  std::atomic<int> missing = 0, joins = 0; // have not exchanged, or joined
  std::atomic<bool> ended = false;

  void fail(std::exception_ptr why) {
    const std::lock_guard guard{lock};
    if (!failure)
      failure = std::move(why);
    ended = true;
  }

  void join(end& one) {
    try {
      auto by = join_group(one.on, one.as, ended);
      {
        const std::lock_guard guard{lock};
        one.by = std::move(by);
        if (ended) // earlier communicators have been aborted already
          one.by->abort();
      }
      for (--joins; joins > 0 && !ended;)
        std::this_thread::sleep_for(1ms);
      one.first->run(*one.by, one.on);
    } catch (...) {
      fail(std::current_exception());
    }
    --missing;
  }
};

gpu_groups::gpu_groups(const run_plan& plan, const known_groups& known,
                       const std::vector<int>& here,
                       const std::shared_ptr<compute_threads>& threads,
                       run_watch& watch, const std::function<bool()>& ended) {
  const auto groups = exchanging_groups(plan);
  for (const auto& [number, id] : known.ids) {
    const auto& group = groups.at(static_cast<std::size_t>(number));
    for (int m = 0; m < static_cast<int>(group.members.size()); ++m) {
      const auto& where = group.members[static_cast<std::size_t>(m)];
      if (!is_here(plan, where, here))
        continue;
      const auto at = plan.processor_of(plan.rank_of(where));
      const auto members = static_cast<int>(group.members.size());
      ends_.emplace_back(new end{
        .of = group,
        .as = {id, m, members, group.is_edge() ? blocks_of_edge : blocks_of_group},
        .name = text_of(group),
        .seen = watch.group_of(where, deed_of(group)),
        .on = stream_on(at, 1, precision::fp32),
        .first = std::make_unique<trial>(at, m, members)});
    }
  }
  join_all(ended);
  for (auto& one : ends_) {
    one->launches =
      std::make_unique<cpu_device>(one->seen, threads, 1, &one->on,
                                   [name = one->name](const work&) { return name; });
    one->group = {one->by.get(), &one->on, one->launches.get()};
  }
}

/// Runs `operation` for all members at once: a member that is ended waits for others
/// that are.
template <class What>
void gpu_groups::at_once(const What& what) {
  std::vector<std::thread> threads;
  for (auto& one : ends_)
    try {
      threads.push_back(start_thread(1, [&what, &one] { what(*one); }));
    } catch (const no_thread&) {
      what(*one);
    }
  for (auto& thread : threads)
    thread.join();
}

gpu_groups::~gpu_groups() {
  for (auto& one : ends_)
    one->launches.reset();
  at_once([](end& one) { one.by.reset(); });
}

void gpu_groups::join_all(const std::function<bool()>& ended) {
  joining all;
  std::vector<std::thread> threads;
  all.missing = all.joins = static_cast<int>(ends_.size());
  try {
    for (auto& one : ends_)
      threads.push_back(
        start_thread(static_cast<int>(ends_.size()), [&] { all.join(*one); }));
  } catch (const no_thread&) {
    all.fail(std::current_exception());
  }
  const auto late = std::chrono::steady_clock::now() + patience;
  bool is_told_to_end = false;
  while (all.missing > 0 && !all.ended) {
    if (ended && ended())
      all.ended = is_told_to_end = true;
    if (std::chrono::steady_clock::now() > late)
      all.fail(std::make_exception_ptr(std::runtime_error{
        "the GPUs that exchange " + ends_.front()->name
        + " have not all met within two minutes; NCCL_DEBUG=INFO lets NCCL say why"}));
    std::this_thread::sleep_for(1ms);
  }
  if (all.ended) {
    const std::lock_guard guard{all.lock};
    at_once([](const end& one) {
      if (one.by)
        one.by->abort();
    });
  }
  for (auto& thread : threads)
    thread.join();
  for (auto& one : ends_)
    one->first.reset();
  if (is_told_to_end)
    throw ended_while_joining{};
  if (all.failure)
    std::rethrow_exception(all.failure);
}

template <class Is>
gpu_group* gpu_groups::find_if(position where, const Is& is) {
  const auto found = std::ranges::find_if(
    ends_, [&](const auto& one) { return one->where() == where && is(one->of); });
  return found != ends_.end() ? &(*found)->group : nullptr;
}

gpu_group* gpu_groups::find(position where, meeting_kind about, int stride) {
  return find_if(where, [&](const exchanging_group& of) {
    return of.about == about && of.stride == stride;
  });
}

gpu_group* gpu_groups::find_edge(position from, position to, position end) {
  return find_if(end, [&](const exchanging_group& of) {
    return of.is_edge() && of.members.front() == from && of.members.back() == to;
  });
}

void gpu_groups::stop() {
  for (auto& one : ends_)
    one->launches->stop();
  const auto late = std::chrono::steady_clock::now() + patience_at_end;
  while (!idle() && std::chrono::steady_clock::now() < late)
    std::this_thread::sleep_for(1ms);
  if (!idle())
    at_once([](const end& one) {
      if (!one.launches->idle())
        one.by->abort();
    });
}

bool gpu_groups::idle() const {
  return std::ranges::all_of(ends_,
                             [](const auto& one) { return one->launches->idle(); });
}

} // namespace troupe
