// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/bounds.hpp"

#include "schedules/program.hpp"
#include "schedules/stage_version_ledger.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {

namespace {

/// Tracks the stashes and versions of one stage through a rank's program.
class stage_usage {
public:
  stage_usage(const schedule& sch, const shape& dims, hosted_stage where)
    : where_(where), ledger_(sch, dims, where) {
    // nop
  }

  bool is(const action& a) const {
    return hosted_stage{a.direction, a.stage} == where_;
  }

  void apply(const action& a) {
    switch (a.op) {
    case op::forward:
      ledger_.begin_forward(a.microbatch);
      break;
    case op::input_gradient:
      most_split_ = std::max(most_split_, ++split_);
      break;
    case op::weight_gradient:
      --split_;
      ledger_.end_backward(a.microbatch);
      break;
    case op::backward:
      ledger_.end_backward(a.microbatch);
      break;
    case op::update:
      ledger_.begin_update();
      ledger_.end_update();
      break;
    case op::recompute:
      break;
    }
  }

  stage_bounds peak() const {
    return {ledger_.peak_held(), most_split_, ledger_.versions_peak()};
  }

private:
  hosted_stage where_;
  stage_version_ledger ledger_;
  int split_ = 0; // between I and W
  int most_split_ = 0;
};

} // namespace

shape settled(const schedule& sch, const shape& dims) {
  if (sch.local_rule() || !sch.repeats)
    return dims;
  const auto update = std::int64_t{update_size(sch, dims)};
  // Steps are removed in groups: at the end of a group, updates and batches end
  // together.
  const auto group = update / std::gcd(update, std::int64_t{dims.microbatches});
  const auto fill = 4 * (dims.stages + update) / dims.microbatches + 3;
  const auto left_out = std::max<std::int64_t>(dims.steps - fill, 0) / group * group;
  auto result = dims;
  result.steps -= static_cast<int>(left_out);
  return result;
}

std::vector<stage_bounds> bounds_of(const schedule& sch, const shape& dims, int rank) {
  const auto hosted = hosted_by(sch.where, dims, rank);
  if (const auto keys = sch.active_keys())
    return std::vector<stage_bounds>(hosted.size(),
                                     {std::min(*keys, dims.total()), 0, 1});
  std::vector<stage_usage> stages;
  for (const auto& where : hosted)
    stages.emplace_back(sch, dims, where);
  for (program p{sch, dims, rank}; p.front() != nullptr; p.pop())
    std::ranges::find_if(stages, [&](const stage_usage& s) {
      return s.is(*p.front());
    })->apply(*p.front());
  std::vector<stage_bounds> result;
  for (const auto& stage : stages)
    result.push_back(stage.peak());
  return result;
}

} // namespace troupe
