// SPDX-License-Identifier: BSD-3-Clause
#include "actors/meetings/tensor_meeting.hpp"

#include "plan/exchange_sizes.hpp"

namespace troupe {

tensor_meeting::tensor_meeting(const run_plan& plan, position where, pool* payloads)
  : collective_meeting(plan, where, meeting_kind::shards), payloads_(payloads) {
  // nop
}

meeting_messages tensor_meeting::begin(int index) {
  const auto& collective = expected_[static_cast<std::size_t>(index)];
  const int instance = started_count_++;
  collective_memory memory;
  if (payloads_ != nullptr)
    memory = {collective.array, collective.array, payloads_};
  return start(shard_part(plan(), where(), collective, instance), memory);
}

position tensor_meeting::member_at(int, int member) const {
  auto result = where();
  result.tensor = member;
  return result;
}

} // namespace troupe
