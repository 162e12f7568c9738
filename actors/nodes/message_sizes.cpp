// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/message_sizes.hpp"

#include "plan/sharding.hpp"
#include "plan/stage_experts.hpp"
#include "plan/stage_pools.hpp"

#include <algorithm>
#include <type_traits>

namespace troupe {

namespace {

using sizes = std::vector<std::int64_t>;

constexpr std::int64_t value_bytes = sizeof(float);

void add(sizes& to, const sizes& values) {
  for (const auto count : values)
    to.push_back(count * value_bytes);
}

sizes sizes_of(const run_plan&, const tensor_header& header) {
  return {header.is_call() ? 0 : header.samples * header.values * value_bytes};
}

sizes sizes_of(const run_plan&, const mail::meeting_message& message) {
  return std::visit(
    [&](const auto& content) -> sizes {
      using type = std::decay_t<decltype(content)>;
      if constexpr (std::is_same_v<type, collective_message>)
        return {content.is_call() ? 0 : content.bytes};
      else if constexpr (std::is_same_v<type, mail::tied_part>)
        return {content.values * value_bytes};
      else if constexpr (
        std::is_same_v<
          type, mail::rows_to_expert> || std::is_same_v<type, mail::rows_from_expert>)
        return {message.bytes};
      else
        return {};
    },
    message.body);
}

sizes sizes_of(const run_plan& plan, const mail::snapshot& copy) {
  sizes result;
  add(result, held_of(plan, shared_out::parameters, copy.where));
  return result;
}

sizes sizes_of(const run_plan& plan, const mail::collected& message) {
  sizes result;
  const auto parameters = held_of(plan, shared_out::parameters, message.where);
  add(result, parameters);
  if (!message.gradients.empty())
    add(result, held_of(plan, shared_out::gradients, message.where));
  return result;
}

sizes sizes_of(const mail::saved& copies, const copies_bound& bound) {
  sizes result(copies.versions.size(), bound.versions.values * value_bytes);
  result.resize(result.size() + copies.state.size(), bound.state.values * value_bytes);
  return result;
}

sizes sizes_of(const run_plan& plan, const mail::saved& message) {
  return sizes_of(message, saved_copies(plan, message.where));
}

sizes sizes_of(const run_plan& plan, const mail::kept_state& message) {
  return sizes_of(message.copies, kept_copies(plan, message.copies.where));
}

sizes sizes_of(const run_plan& plan, const mail::version_made& message) {
  sizes result;
  add(result, held_of(plan, shared_out::parameters, message.where));
  add(result, held_of(plan, shared_out::gradients, message.where));
  return result;
}

bool is_in(const run_plan& plan, position where) {
  return where.data >= 0 && where.data < plan.mesh[axis::data] && where.direction >= 0
         && where.direction < plan.directions() && where.stage >= 0
         && where.stage < plan.dims.stages && where.tensor >= 0
         && where.tensor < plan.mesh[axis::tensor];
}

} // namespace

std::vector<std::int64_t> tensor_bytes(const run_plan& plan,
                                       const wire::addressed_message& message) {
  return std::visit(
    [&](const auto& content) -> sizes {
      if constexpr (requires { content.header; })
        return sizes_of(plan, content.header);
      else if constexpr (requires { sizes_of(plan, content); })
        return sizes_of(plan, content);
      else
        return {};
    },
    message.message);
}

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
