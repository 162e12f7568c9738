#include "actors/meetings/tensor_meeting.hpp"

#include "messaging/collective_catalog.hpp"

#include <bit>

namespace troupe {

namespace {

/// No more bytes than a ring, in the fewest rounds. Where ranks are no power of two the
/// halves of halving would cost more.
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
