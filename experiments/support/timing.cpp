#include "experiments/support/timing.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <thread>
#include <utility>

namespace troupe {

bool has_thread_a_rank(const run_plan& plan) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::min(plan.threads, cores) >= plan.ranks();
}

bool needs_modelled_times(const run_plan& plan) {
  return plan.clock == clock_kind::real && !has_thread_a_rank(plan)
         && plan.updates_are_by(update_by::all) && plan.expert == 1;
}

namespace {

/// Takes out the first parts of updates that waited for other stages when the run was
/// interrupted: their second parts never came.
void forget_unmade_updates(std::vector<sample>& row) {
  std::set<std::pair<int, int>> made; // stage and microbatch of updates further on
  for (std::size_t i = row.size(); i-- > 0;) {
    const auto& s = row[i];
    if (s.what.what != op::update)
      continue;
    if (!s.part)
      made.emplace(s.what.stage, s.what.microbatch);
    else if (!made.contains({s.what.stage, s.what.microbatch}))
      row.erase(row.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

/// Makes one of the parts of a forward or backward that waited for tensor shards.
void join_parts(std::vector<sample>& row) {
  std::vector<sample> joined;
  nanoseconds before = 0; // what the parts of the next sample took
  for (auto s : row) {
    if (s.part && s.what.what != op::update) {
      before += s.end - s.start;
      continue;
    }
    s.start -= std::exchange(before, 0);
    joined.push_back(s);
  }
  row = std::move(joined);
}

} // namespace

void model_times(const run_plan& plan, run_result& result) {
  for (auto& row : result.actions) {
    forget_unmade_updates(row);
    join_parts(row);
  }
  const bool clips = plan.work && plan.work->optimizer.clip > 0
                     && plan.work->optimizer.scope == clip_scope::network;
  // Data replicas have ranks of their own, and tensor shards; each pipeline of them is
  // laid out by itself.
  const auto ran = timeline_of(result.actions);
  timeline moved(ran.size());
  const auto of_data = static_cast<std::size_t>(plan.dims.stages * plan.tensor);
  for (std::size_t first = 0; first < ran.size(); ++first) {
    if (first % of_data >= static_cast<std::size_t>(plan.tensor))
      continue;
    timeline pipeline;
    for (auto rank = first; rank < first - first % of_data + of_data;
         rank += static_cast<std::size_t>(plan.tensor))
      pipeline.push_back(ran[rank]);
    auto laid_out =
      lay_out(plan.sch, plan.dims, pipeline, 0,
              clips ? update_barrier::all_stages : update_barrier::replicas);
    for (std::size_t s = 0; s < laid_out.size(); ++s)
      moved[first + s * static_cast<std::size_t>(plan.tensor)] = std::move(laid_out[s]);
  }
  std::vector<rank_sums> sums(moved.size());
  for (std::size_t rank = 0; rank < moved.size(); ++rank)
    for (std::size_t i = 0; i < moved[rank].size(); ++i) {
      auto& s = result.actions[rank][i];
      s.start = moved[rank][i].start;
      s.end = moved[rank][i].end;
      sums[rank].add(s);
    }
  const auto modelled = measures_of(sums, plan.dims.stages);
  result.sums.makespan = modelled.makespan;
  result.sums.busy = modelled.busy;
  result.sums.span_idle = modelled.span_idle;
}

} // namespace troupe
