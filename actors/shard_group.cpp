#include "actors/shard_group.hpp"

#include "messaging/collective_catalog.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

collective_part part_of(int rank, int ranks, const shard_collective<float>& what,
                        int instance) {
  const bool sums = what.what == shard_collective<float>::kind::sum;
  // No more bytes than a ring, in the fewest rounds.
  const auto all_reduce = ranks == 2 ? naive_all_reduce() : halving_all_reduce();
  return even_part(sums ? all_reduce : halving_all_gather(), rank, ranks, what.values, 0,
                   instance);
}

} // namespace

shard_group::shard_group(const run_plan& plan, position where, pool* payloads)
  : rank_(where.tensor), ranks_(plan.tensor), payloads_(payloads) {
  // nop
}

std::vector<collective_message>
shard_group::begin(const shard_collective<float>& what) {
  const int instance = begun_++;
  collective_memory memory;
  if (payloads_ != nullptr)
    memory = {what.array, what.array, payloads_};
  running_.emplace(part_of(rank_, ranks_, what, instance), memory);
  auto out = running_->begin();
  const auto own = std::stable_partition(
    early_.begin(), early_.end(),
    [&](const collective_message& m) { return m.instance != instance; });
  for (auto m = own; m != early_.end(); ++m)
    for (auto& answer : running_->take(std::move(*m)))
      out.push_back(std::move(answer));
  early_.erase(own, early_.end());
  return note(std::move(out));
}

std::vector<collective_message> shard_group::take(collective_message message) {
  if (!running_ || message.instance != running_->part().instance) {
    early_.push_back(std::move(message));
    return {};
  }
  return note(running_->take(std::move(message)));
}

std::vector<collective_message> shard_group::note(std::vector<collective_message> out) {
  if (running_->done())
    running_.reset();
  return out;
}

std::optional<int> shard_group::waits_for() const {
  if (!running_)
    return {};
  const auto missing = running_->waits_for();
  return missing ? std::optional{missing->from} : std::nullopt;
}

// A message may still be under way when the next collective begins, but no longer: that
// one cannot end before everyone has begun it.
payload_bound shard_group::copies_of(const run_plan& plan, position where,
                                     const shard_collective<float>& what) {
  auto result = payloads_of(part_of(where.tensor, plan.tensor, what, 0));
  result.buffers *= 2;
  return result;
}

} // namespace troupe
