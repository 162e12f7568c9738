// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/tensor_meeting.hpp"

#include "messaging/collective_catalog.hpp"

#include <bit>

namespace troupe {

namespace {

/// Sends no more bytes than a ring, in the fewest rounds. Where the number of ranks is
/// no power of two, halving would cost more bytes for a gather or a scatter.
collective_order order_of(shard_collective<float>::kind what, int ranks) {
  using kind = shard_collective<float>::kind;
  if (what == kind::sum)
    return ranks == 2 ? doubling_all_reduce() : halving_all_reduce();
  const bool in_pairs = std::has_single_bit(static_cast<unsigned>(ranks));
  if (what == kind::scatter)
    return in_pairs ? halving_reduce_scatter() : ring_reduce_scatter();
  return in_pairs ? halving_all_gather() : ring_all_gather();
}

collective_part part_of(int rank, int ranks, const shard_collective<float>& what,
                        int instance) {
  return even_part(order_of(what.what, ranks), rank, ranks, what.values, 0, instance);
}

} // namespace

tensor_meeting::tensor_meeting(const run_plan& plan, position where, pool* payloads)
  : plan_(&plan), where_(where), payloads_(payloads) {
  // nop
}

letters tensor_meeting::begin(int occasion) {
  const auto& what = expected_[static_cast<std::size_t>(occasion)];
  const int instance = begun_++;
  collective_memory memory;
  if (payloads_ != nullptr)
    memory = {what.array, what.array, payloads_};
  return sent(
    under_way_.begin(part_of(where_.tensor, plan_->tensor, what, instance), memory));
}

void tensor_meeting::yield_sums(const sum_asker& ask) {
  under_way_.yield_sums([ask](int instance, collective_sum what) {
    ask({meeting_kind::shards, instance, std::move(what)});
  });
}

void tensor_meeting::exchange_by(const group_finder& groups, const sum_asker& ask) {
  under_way_.exchange_by(
    [group = groups(meeting_kind::shards, 1)](int) { return group; },
    [ask](int instance, collective_sum what) {
      ask({meeting_kind::shards, instance, std::move(what)});
    });
}

letters tensor_meeting::take(mail::letter what) {
  if (const auto* sum = std::get_if<mail::sum_over>(&what.what))
    return sent(under_way_.end_sum(sum->over()));
  return sent(under_way_.take(std::get<collective_message>(std::move(what.what))));
}

letters tensor_meeting::sent(std::vector<collective_message> all) const {
  letters result;
  for (auto& message : all) {
    auto to = where_;
    to.tensor = message.to;
    const auto bytes = message.bytes();
    result.push_back({{role::stage, to},
                      meeting_kind::shards,
                      std::move(message),
                      traffic::tensor,
                      bytes});
  }
  return result;
}

std::optional<absence> tensor_meeting::waits_for() const {
  if (under_way_.sums())
    return own_sum();
  const auto missing = under_way_.waits_for();
  if (!missing)
    return {};
  auto other = where_;
  other.tensor = missing->from;
  return absence{"its part", plan_->name_of(other)};
}

// A message may still be under way when the next collective begins, but no longer. The
// next collective cannot end before all shards have begun that collective.
payload_bound tensor_meeting::copies_of(const run_plan& plan, position where,
                                        const shard_collective<float>& what) {
  return troupe::copies_of(part_of(where.tensor, plan.tensor, what, 0), 2,
                           plan.has_gpus());
}

} // namespace troupe
