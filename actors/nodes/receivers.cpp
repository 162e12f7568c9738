// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/receivers.hpp"

#include "plan/stage_experts.hpp"

#include <algorithm>

namespace troupe {

namespace {

bool is_in(const run_plan& plan, position where) {
  return where.data >= 0 && where.data < plan.mesh[axis::data] && where.direction >= 0
         && where.direction < plan.directions() && where.stage >= 0
         && where.stage < plan.dims.stages && where.tensor >= 0
         && where.tensor < plan.mesh[axis::tensor];
}

} // namespace

bool exists(const run_plan& plan, const wire::address& receiver) {
  using kind = wire::address::kind;
  switch (receiver.actor) {
  case kind::coordinator:
  case kind::recorder:
    return true;
  case kind::scheduler:
    return receiver.number >= 0 && receiver.number < plan.ranks();
  case kind::stage:
    return is_in(plan, receiver.where);
  case kind::optimizer_shard:
    return is_in(plan, receiver.where) && receiver.where.direction == 0;
  case kind::data_source:
    return is_in(plan, receiver.where) && receiver.where.stage == 0;
  case kind::expert: {
    if (!is_in(plan, receiver.where))
      return false;
    const auto experts = experts_of(plan, receiver.where.stage);
    return std::ranges::find(experts, receiver.number) != experts.end()
           && host_of(plan, receiver.number, receiver.where) == receiver.where;
  }
  }
  return false;
}

int rank_of(const run_plan& plan, const wire::address& receiver) {
  using kind = wire::address::kind;
  if (receiver.actor == kind::coordinator || receiver.actor == kind::recorder)
    return -1;
  return receiver.actor == kind::scheduler ? receiver.number
                                           : plan.rank_of(receiver.where);
}

} // namespace troupe
