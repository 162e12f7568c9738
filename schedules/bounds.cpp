#include "schedules/bounds.hpp"

#include "schedules/program.hpp"
#include "schedules/version_ledger.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// What a stage holds after each action of its rank's program.
class holdings {
public:
  holdings(const schedule& sch, const shape& dims, hosted_stage where)
    : schedule_(sch), dims_(dims), where_(where) {
    ledger_.need_from(oldest_version_needed(sch, dims, where, 0));
  }

  bool is(const action& a) const { return hosted_stage{a.replica, a.stage} == where_; }

  void after(const action& a) {
    const auto version = version_read(schedule_, dims_, a.stage, a.microbatch);
    switch (a.what) {
    case op::forward:
      grow(stashes_, peak_.stashes);
      ledger_.hold(*version);
      ledger_.need_from(oldest_version_needed(schedule_, dims_, where_, ++forwarded_));
      break;
    case op::input_gradient:
      grow(split_, peak_.split_backward);
      break;
    case op::weight_gradient:
      --split_;
      [[fallthrough]];
    case op::backward:
      --stashes_;
      ledger_.release(*version);
      break;
    case op::update:
      ledger_.advance();
      break;
    }
  }

  stage_bounds peak() const {
    auto result = peak_;
    result.versions = ledger_.peak();
    return result;
  }

private:
  static void grow(int& now, int& most) { most = std::max(most, ++now); }

  const schedule& schedule_;
  shape dims_;
  hosted_stage where_;
  version_ledger ledger_;
  int forwarded_ = 0;
  int stashes_ = 0;
  int split_ = 0;
  stage_bounds peak_{0, 0, 1};
};

} // namespace

std::vector<stage_bounds> bounds_of(const schedule& sch, const shape& dims, int rank) {
  if (const auto* rule = std::get_if<backward_first>(&sch.order))
    return {{std::min(rule->max_active_keys, dims.total()), 0, 1}};
  std::vector<holdings> stages;
  for (const auto& where : hosted_by(sch.where, dims, rank))
    stages.emplace_back(sch, dims, where);
  for (program p{sch, dims, rank}; p.front() != nullptr; p.pop())
    std::ranges::find_if(stages, [&](const holdings& s) {
      return s.is(*p.front());
    })->after(*p.front());
  std::vector<stage_bounds> result;
  for (const auto& stage : stages)
    result.push_back(stage.peak());
  return result;
}

} // namespace troupe
