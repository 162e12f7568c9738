// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/replayed_stage.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe {

replayed_stage::replayed_stage(const run_plan& plan, position stage_position,
                               const record& ran)
  : where(stage_position),
    slices(plan.work->whole, plan.batches(),
           [&](const network<float>& whole) {
             const auto s = static_cast<std::size_t>(stage_position.stage);
             return slice<float>{whole, plan.work->first_layers[s],
                                 plan.work->first_layers[s + 1], 1};
           }),
    keeps_versions_(plan.sch.weights.reads) {
  for (const auto& s : ran[static_cast<std::size_t>(plan.rank_of(where))])
    if (hosted_stage{s.action.direction, s.action.stage} == where.hosted() && !s.part)
      todo.push_back(s);
  auto& initial = versions[0];
  const space_allocator<float> allocator{memory_of(plan.machine.processor_of(0))};
  const auto first = static_cast<std::size_t>(
    plan.work->first_layers[static_cast<std::size_t>(where.stage)]);
  for (std::size_t i = 0; i < layers().layers().size(); ++i) {
    const auto size = static_cast<std::size_t>(layers().layers()[i]->bucket());
    sum.emplace_back(size, allocator);
    plan.work->weights(first + i, initial.emplace_back(size, allocator).data());
  }
}

const bucket_values& replayed_stage::parameters() {
  const auto entry = versions.find(now().version);
  if (entry == versions.end())
    throw std::logic_error(to_string(now().action, true) + " read version "
                           + std::to_string(now().version)
                           + ", which does not exist; the newest is "
                           + std::to_string(versions.rbegin()->first));
  if (keeps_versions_)
    return entry->second;
  if (newest_.empty())
    newest_ = entry->second;
  else if (in_array_ != now().version)
    for (std::size_t b = 0; b < newest_.size(); ++b)
      std::ranges::copy(entry->second[b], newest_[b].begin());
  in_array_ = now().version;
  return newest_;
}

void replayed_stage::advance() {
  ++next;
  std::erase_if(versions, [this](const auto& v) {
    return v.first != versions.rbegin()->first
           && std::none_of(todo.begin() + static_cast<std::ptrdiff_t>(next), todo.end(),
                           [&](const measured_action& s) {
                             return s.action.op != op::update && s.version == v.first;
                           });
  });
}

void replayed_stage::end_update() {
  summed = 0;
  samples = 0;
  advance();
}

std::string replayed_stage::error() const {
  const auto name =
    stage_name({where.direction, where.stage})
    + (where.data > 0 ? " of data replica " + std::to_string(where.data) : "");
  if (finished())
    return summed == 0 ? ""
                       : name + " has gradients of " + std::to_string(summed)
                           + " microbatches that no update of the record covers";
  const auto stands = name + " stops at " + to_string(now().action);
  switch (now().action.op) {
  case op::forward:
    return stands + ": no forward of the record sends its activation";
  case op::update:
    return stands + ", which makes version " + std::to_string(now().version)
           + ": another stage or replica that takes part in this update never reaches "
             "it";
  default:
    return stands + ": no backward of the record sends its gradient";
  }
}

} // namespace troupe
