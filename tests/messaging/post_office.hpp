// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/collective.hpp"
#include "messaging/collective_catalog.hpp"
#include "messaging/plain_collective.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

/// Collectives without actors: the ranks, and the messages between ranks.
namespace post_office {

using namespace troupe;

/// Random arrays whose sum has other bits in another order.
inline std::vector<std::vector<float>> random_arrays(int ranks, std::int64_t values,
                                                     unsigned seed) {
  std::mt19937 random{seed};
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> result(static_cast<std::size_t>(ranks));
  for (auto& array : result)
    for (std::int64_t i = 0; i < values; ++i)
      array.push_back(normal(random));
  return result;
}

inline std::vector<const float*> views_of(const std::vector<std::vector<float>>& all) {
  std::vector<const float*> result;
  for (const auto& array : all)
    result.push_back(array.data());
  return result;
}

/// A rank with exactly as many buffers as the rank's bound says.
struct member {
  member(const collective_part& p, std::vector<float> array, sums_by adder)
    : source(std::move(array)),
      second(static_cast<std::size_t>(p.order.in_place ? 0 : p.target.values())),
      bound(payloads_of(p)),
      payloads("a test's payloads", bound.buffers, bound.values, memory),
      coder(p.coding->make()),
      part(p, {source.data(), target().data(), &payloads, coder.get()}, adder) {
    // nop
  }

  std::vector<float>& target() { return part_in_place() ? source : second; }
  bool part_in_place() const { return second.empty(); }

  std::vector<float> source, second;
  memory_account memory;
  payload_bound bound;
  pool payloads;
  std::unique_ptr<codec> coder;
  collective part;
  std::optional<collective_sum> sum; ///< That the rank waits for,
  bool summed = false;               ///< and whether that sum has been done.
  bool never_done_early = true;      ///< Before a requested sum was done.
};

/// Ranks that run one collective. Messages arrive in a random order, but messages
/// between two ranks arrive in the order of sending. Where callers do the sums, chance
/// chooses when each sum is done, and when the end is reported.
class ranks {
public:
  ranks(const std::vector<collective_part>& parts,
        const std::vector<std::vector<float>>& arrays,
        sums_by adder = sums_by::itself) {
    for (std::size_t r = 0; r < parts.size(); ++r)
      members.push_back(std::make_unique<member>(parts[r], arrays[r], adder));
  }

  void run(unsigned seed) {
    std::mt19937 random{seed};
    std::vector<std::size_t> asleep;
    for (std::size_t r = 0; r < members.size(); ++r)
      asleep.push_back(r);
    std::ranges::shuffle(asleep, random);
    for (;;) {
      const auto adding = members_that_add();
      const auto events = asleep.size() + under_way.size();
      if (events + adding.size() == 0)
        return;
      const auto choice = random() % (events + adding.size());
      if (choice >= events) {
        go_on_with_sum(*adding[choice - events]);
      } else if (choice < asleep.size()) {
        send(*members[asleep.back()], members[asleep.back()]->part.begin());
        asleep.pop_back();
      } else {
        deliver(choice - asleep.size());
      }
    }
  }

  bool done() const {
    return std::ranges::all_of(members, [](const auto& m) { return m->part.done(); });
  }

  std::vector<std::unique_ptr<member>> members;
  std::deque<collective_message> under_way;
  std::int64_t messages = 0;
  std::int64_t bytes = 0;        ///< Of all messages.
  std::int64_t values_added = 0; ///< By callers.

private:
  void send(member& from, std::vector<collective_message> out) {
    for (auto& message : out) {
      bytes += message.bytes;
      under_way.push_back(std::move(message));
      ++messages;
    }
    if (from.sum)
      return;
    from.sum = from.part.take_sum();
    if (from.sum)
      values_added += from.sum->values;
  }

  std::vector<member*> members_that_add() {
    std::vector<member*> result;
    for (auto& m : members)
      if (m->sum)
        result.push_back(m.get());
    return result;
  }

  void go_on_with_sum(member& m) {
    m.never_done_early = m.never_done_early && !m.part.done();
    if (!std::exchange(m.summed, true))
      return m.sum->run();
    m.summed = false;
    m.sum.reset();
    send(m, m.part.end_sum());
  }

  void deliver(std::size_t index) {
    const auto& chosen = under_way[index];
    const auto first = std::ranges::find_if(under_way, [&](const auto& m) {
      return m.from == chosen.from && m.to == chosen.to;
    });
    auto message = std::move(*first);
    under_way.erase(first);
    auto& to = *members[static_cast<std::size_t>(message.to)];
    send(to, to.part.receive(std::move(message)));
  }
};

inline std::vector<collective_part> even_parts(const collective_order& order, int count,
                                               std::int64_t values, int root = 0) {
  std::vector<collective_part> result;
  for (int r = 0; r < count; ++r)
    result.push_back(even_part(order, r, count, values, root));
  return result;
}

} // namespace post_office
