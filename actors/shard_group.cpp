#include "actors/shard_group.hpp"

#include "messaging/collective_catalog.hpp"

namespace troupe {

namespace {

collective_part part_of(int rank, int ranks, const shard_collective<float>& what,
                        int instance) {
  const bool sums = what.what == shard_collective<float>::kind::sum;
  // No more bytes than a ring, in the fewest rounds.
  const auto all_reduce = ranks == 2 ? doubling_all_reduce() : halving_all_reduce();
  return even_part(sums ? all_reduce : halving_all_gather(), rank, ranks, what.values,
                   0, instance);
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
  return under_way_.begin(part_of(rank_, ranks_, what, instance), memory);
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
