// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/mail_sizes.hpp"

#include "actors/pipeline/stage_pools.hpp"

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

sizes of(const run_plan&, const tensor_header& header) {
  return {header.is_call() ? 0 : header.samples * header.values * value_bytes};
}

sizes of(const run_plan&, const mail::letter& letter) {
  return std::visit(
    [&](const auto& content) -> sizes {
      using type = std::decay_t<decltype(content)>;
      if constexpr (std::is_same_v<type, collective_message>)
        return {content.is_call() ? 0 : content.bytes()};
      else if constexpr (std::is_same_v<type, mail::tied_part>)
        return {content.values * value_bytes};
      else if constexpr (
        std::is_same_v<
          type, mail::rows_to_expert> || std::is_same_v<type, mail::rows_from_expert>)
        return {letter.bytes};
      else
        return {};
    },
    letter.what);
}

sizes of(const run_plan& plan, const mail::snapshot& copy) {
  sizes result;
  add(result, plan.held_of(shared_out::parameters, copy.where));
  return result;
}

sizes of(const run_plan& plan, const mail::collected& all) {
  sizes result;
  const auto parameters = plan.held_of(shared_out::parameters, all.where);
  add(result, parameters);
  if (!all.gradients.empty())
    add(result, plan.held_of(shared_out::gradients, all.where));
  return result;
}

sizes of(const mail::saved& all, const copies_bound& bound) {
  sizes result(all.versions.size(), bound.versions.values * value_bytes);
  result.resize(result.size() + all.moments.size(), bound.moments.values * value_bytes);
  return result;
}

sizes of(const run_plan& plan, const mail::saved& all) {
  return of(all, saved_copies(plan, all.where));
}

sizes of(const run_plan& plan, const mail::recalled& all) {
  return of(all.copies, kept_copies(plan, all.copies.where));
}

sizes of(const run_plan& plan, const mail::version_made& made) {
  sizes result;
  add(result, plan.held_of(shared_out::parameters, made.where));
  add(result, plan.held_of(shared_out::gradients, made.where));
  return result;
}

bool is_in(const run_plan& plan, position where) {
  return where.data >= 0 && where.data < plan.data && where.direction >= 0
         && where.direction < plan.directions() && where.stage >= 0
         && where.stage < plan.dims.stages && where.tensor >= 0
         && where.tensor < plan.tensor;
}

} // namespace

std::vector<std::int64_t> tensor_bytes(const run_plan& plan,
                                       const wire::addressed_mail& all) {
  return std::visit(
    [&](const auto& what) -> sizes {
      if constexpr (requires { what.header; })
        return of(plan, what.header);
      else if constexpr (requires { of(plan, what); })
        return of(plan, what);
      else
        return {};
    },
    all.what);
}

bool exists(const run_plan& plan, const wire::address& of) {
  using kind = wire::address::kind;
  switch (of.what) {
  case kind::coordinator:
  case kind::recorder:
    return true;
  case kind::scheduler:
    return of.number >= 0 && of.number < plan.ranks();
  case kind::stage:
    return is_in(plan, of.where);
  case kind::optimizer_shard:
    return is_in(plan, of.where) && of.where.direction == 0;
  case kind::data_source:
    return is_in(plan, of.where) && of.where.stage == 0;
  case kind::expert: {
    if (!is_in(plan, of.where))
      return false;
    const auto all = plan.experts_of(of.where.stage);
    return std::ranges::find(all, of.number) != all.end()
           && plan.host_of(of.number, of.where) == of.where;
  }
  }
  return false;
}

int rank_of(const run_plan& plan, const wire::address& of) {
  using kind = wire::address::kind;
  if (of.what == kind::coordinator || of.what == kind::recorder)
    return -1;
  return of.what == kind::scheduler ? of.number : plan.rank_of(of.where);
}

} // namespace troupe
