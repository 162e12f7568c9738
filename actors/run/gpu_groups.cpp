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

constexpr auto join_timeout = 120s; // until all members have met
// for exchanges that are over and not yet reported
constexpr auto end_timeout = 50ms;

// An edge has fewer blocks: a stage computes while the stage waits for a tensor.
constexpr int blocks_of_group = 16, blocks_of_channel = 4;

bool is_here(const run_plan& plan, position where,
             const std::vector<int>& local_ranks) {
  return std::ranges::find(local_ranks, plan.rank_of(where)) != local_ranks.end();
}

/// "the gradients of stage 1"
std::string text_of(const exchanging_group& group) {
  const auto& first = group.members.front();
  const auto suffix = " of stage " + std::to_string(first.stage);
  if (group.is_channel())
    return "the tensors from stage " + std::to_string(first.stage) + " to stage "
           + std::to_string(group.members.back().stage);
  switch (*group.kind) {
  case meeting_kind::shards:
    return "the shards" + suffix;
  case meeting_kind::layers:
    return "the layers" + suffix;
  case meeting_kind::gathers:
    return "the parameters" + suffix;
  default:
    return "the gradients" + suffix;
  }
}

/// "exchanging the gradients of stage 1 with those of other ranks"
std::string activity_of(const exchanging_group& group) {
  return group.is_channel()
           ? "moving " + text_of(group)
           : "exchanging " + text_of(group) + " with those of other ranks";
}

} // namespace

known_groups groups_here(const run_plan& plan) {
  known_groups result;
  for (const int group : groups_on_gpus(plan, local_gpus(plan))) {
    if (result.exclusion = absence_of_communicators(); !result.exclusion.empty())
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
  trial(const processor& gpu, int member, int members)
    : member_(member), members_(members), sent_(gpu, members), received_(gpu, members) {
    for (int peer = 0; peer < members; ++peer)
      sent_.data[peer] = value(member, peer);
  }

  void run(communicator& group_communicator, const stream& exchange_stream) {
    std::vector<transfer> transfers;
    for (int peer = 0; peer < members_; ++peer)
      if (peer != member_) {
        transfers.push_back({transfer::way::send, peer, sent_.data + peer, 1});
        transfers.push_back({transfer::way::receive, peer, received_.data + peer, 1});
      }
    group_communicator.exchange(transfers);
    exchange_stream.wait();
    group_communicator.check();
    for (int peer = 0; peer < members_; ++peer)
      if (peer != member_ && received_.data[peer] != value(peer, member_))
        throw std::runtime_error{"GPUs of a group received wrong values in a test"};
  }

private:
  /// Memory that a GPU and this machine reach.
  struct shared_values {
    shared_values(const processor& gpu, int count)
      : where(memory_of(gpu)),
        bytes(count * std::int64_t{sizeof(float)}),
        data(static_cast<float*>(where.allocate(bytes))) {
      // nop
    }
    ~shared_values() { where.deallocate(data, bytes); }
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
  shared_values sent_, received_;
};

struct gpu_groups::local_member {
  exchanging_group exchange;
  group_member as;
  std::string name;
  occupation& seen;
  stream exchange_stream;
  std::unique_ptr<trial> first; // until all are through
  std::unique_ptr<communicator> group_communicator = nullptr;
  std::unique_ptr<cpu_device> launches = nullptr;
  gpu_group group = {};

  position where() const {
    return exchange.members[static_cast<std::size_t>(as.member)];
  }
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

  void join(local_member& member) {
    try {
      auto joined = join_group(member.exchange_stream, member.as, ended);
      {
        const std::lock_guard guard{lock};
        member.group_communicator = std::move(joined);
        if (ended) // earlier communicators have been aborted already
          member.group_communicator->abort();
      }
      for (--joins; joins > 0 && !ended;)
        std::this_thread::sleep_for(1ms);
      member.first->run(*member.group_communicator, member.exchange_stream);
    } catch (...) {
      fail(std::current_exception());
    }
    --missing;
  }
};

gpu_groups::gpu_groups(const run_plan& plan, const known_groups& known,
                       const std::vector<int>& local_ranks,
                       const std::shared_ptr<compute_threads>& threads,
                       run_monitor& watch, const std::function<bool()>& ended) {
  const auto groups = exchanging_groups(plan);
  for (const auto& [number, id] : known.ids) {
    const auto& group = groups.at(static_cast<std::size_t>(number));
    for (int m = 0; m < static_cast<int>(group.members.size()); ++m) {
      const auto& where = group.members[static_cast<std::size_t>(m)];
      if (!is_here(plan, where, local_ranks))
        continue;
      const auto gpu = plan.machine.processor_of(plan.rank_of(where));
      const auto members = static_cast<int>(group.members.size());
      members_.emplace_back(new local_member{
        .exchange = group,
        .as = {id, m, members,
               group.is_channel() ? blocks_of_channel : blocks_of_group},
        .name = text_of(group),
        .seen = watch.group_of(where, activity_of(group)),
        .exchange_stream = stream_on(gpu, 1, precision::fp32),
        .first = std::make_unique<trial>(gpu, m, members)});
    }
  }
  join_all(ended);
  for (auto& member : members_) {
    member->launches =
      std::make_unique<cpu_device>(member->seen, threads, 1, &member->exchange_stream,
                                   [name = member->name](const work&) { return name; });
    member->group = {member->group_communicator.get(), &member->exchange_stream,
                     member->launches.get()};
  }
}

/// Runs `operation` for all members at once: a member that is ended waits for others
/// that are.
template <class What>
void gpu_groups::at_once(const What& operation) {
  std::vector<std::thread> threads;
  for (auto& member : members_)
    try {
      threads.push_back(start_thread(1, [&operation, &member] { operation(*member); }));
    } catch (const no_thread&) {
      operation(*member);
    }
  for (auto& thread : threads)
    thread.join();
}

gpu_groups::~gpu_groups() {
  for (auto& member : members_)
    member->launches.reset();
  at_once([](local_member& member) { member.group_communicator.reset(); });
}

void gpu_groups::join_all(const std::function<bool()>& ended) {
  joining attempt;
  std::vector<std::thread> threads;
  attempt.missing = attempt.joins = static_cast<int>(members_.size());
  try {
    for (auto& member : members_)
      threads.push_back(start_thread(static_cast<int>(members_.size()),
                                     [&] { attempt.join(*member); }));
  } catch (const no_thread&) {
    attempt.fail(std::current_exception());
  }
  const auto late = std::chrono::steady_clock::now() + join_timeout;
  bool is_told_to_end = false;
  while (attempt.missing > 0 && !attempt.ended) {
    if (ended && ended())
      attempt.ended = is_told_to_end = true;
    if (std::chrono::steady_clock::now() > late)
      attempt.fail(std::make_exception_ptr(
        std::runtime_error{"the GPUs that exchange " + members_.front()->name
                           + " have not all connected within two minutes; "
                             "NCCL_DEBUG=INFO makes NCCL print the reason"}));
    std::this_thread::sleep_for(1ms);
  }
  if (attempt.ended) {
    const std::lock_guard guard{attempt.lock};
    at_once([](const local_member& member) {
      if (member.group_communicator)
        member.group_communicator->abort();
    });
  }
  for (auto& thread : threads)
    thread.join();
  for (auto& member : members_)
    member->first.reset();
  if (is_told_to_end)
    throw ended_while_joining{};
  if (attempt.failure)
    std::rethrow_exception(attempt.failure);
}

template <class Is>
gpu_group* gpu_groups::find_if(position where, const Is& is) {
  const auto match = std::ranges::find_if(members_, [&](const auto& member) {
    return member->where() == where && is(member->exchange);
  });
  return match != members_.end() ? &(*match)->group : nullptr;
}

gpu_group* gpu_groups::find(position where, meeting_kind kind, int stride) {
  return find_if(where, [&](const exchanging_group& group) {
    return group.kind == kind && group.stride == stride;
  });
}

gpu_group* gpu_groups::find_channel(position from, position to, position end) {
  return find_if(end, [&](const exchanging_group& group) {
    return group.is_channel() && group.members.front() == from
           && group.members.back() == to;
  });
}

void gpu_groups::stop() {
  for (auto& member : members_)
    member->launches->stop();
  const auto late = std::chrono::steady_clock::now() + end_timeout;
  while (!idle() && std::chrono::steady_clock::now() < late)
    std::this_thread::sleep_for(1ms);
  if (!idle())
    at_once([](const local_member& member) {
      if (!member.launches->idle())
        member.group_communicator->abort();
    });
}

bool gpu_groups::idle() const {
  return std::ranges::all_of(
    members_, [](const auto& member) { return member->launches->idle(); });
}

} // namespace troupe
