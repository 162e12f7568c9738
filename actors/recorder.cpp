#include "actors/recorder.hpp"

#include "actors/failure.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// Microbatches of each data replica whose losses make one entry.
int entry_size(const run_plan& plan) {
  return plan.sch.local_rule() ? 1 : update_size(plan.sch, plan.dims);
}

/// Microbatches of all data replicas in one entry.
std::size_t whole_entry(const run_plan& plan) {
  return static_cast<std::size_t>(entry_size(plan) * plan.data);
}

} // namespace

run_log::run_log(const run_plan& plan) : sums(static_cast<std::size_t>(plan.ranks())) {
  if (plan.keep_record)
    actions.resize(static_cast<std::size_t>(plan.ranks()));
  if (!plan.work)
    return;
  const int size = entry_size(plan), total = plan.dims.total();
  for (int first = 0; first < total; first += size)
    for (int d = 0; d < plan.data; ++d)
      for (int m = first; m < std::min(first + size, total); ++m)
        order_.push_back(plan.microbatch_of_all(d, m));
  microbatches.resize(order_.size());
}

progress run_log::add(const run_plan& plan, const mail::microbatch_loss& loss) {
  const auto at = [this](std::size_t place) -> const mail::microbatch_loss& {
    return microbatches[static_cast<std::size_t>(order_[place])];
  };
  microbatches[static_cast<std::size_t>(loss.microbatch)] = loss;
  while (complete_ < order_.size() && at(complete_).samples > 0)
    samples_ += at(complete_++).samples;
  progress result{.samples = samples_, .loss = {}};
  const auto size = whole_entry(plan), end = complete_ / size * size;
  double sum = 0;
  std::int64_t samples = 0;
  for (auto i = end >= size ? end - size : 0; i < end; ++i) {
    sum += at(i).sum.loss;
    samples += at(i).samples;
  }
  if (samples > 0)
    result.loss = sum / static_cast<double>(samples * plan.work->whole.rows);
  return result;
}

void run_log::losses(const run_plan& plan, std::vector<double>& loss,
                     std::vector<std::int64_t>& samples) const {
  const auto size = whole_entry(plan);
  std::int64_t seen = 0;
  for (std::size_t first = 0; first < complete_; first += size) {
    const auto last = std::min(first + size, order_.size());
    if (last > complete_)
      return;
    double sum = 0;
    std::int64_t count = 0;
    for (auto i = first; i < last; ++i) {
      const auto& m = microbatches[static_cast<std::size_t>(order_[i])];
      sum += m.sum.loss;
      count += m.samples;
    }
    seen += count;
    loss.push_back(sum / static_cast<double>(count * plan.work->whole.rows));
    samples.push_back(seen);
  }
}

recorder_actor::behavior_type
recorder(recorder_actor::stateful_pointer<recorder_state> self, props shared,
         std::shared_ptr<run_log> log, std::shared_ptr<notice_board> board) {
  report_failures(self);
  auto& state = self->state;
  state.shared = std::move(shared);
  state.log = std::move(log);
  state.board = std::move(board);
  auto& meter = *state.shared.meter;
  return {
    hear(self, meter,
         [self](const mail::samples& s) {
           auto& row = self->state.log->actions[static_cast<std::size_t>(s.rank)];
           row.insert(row.end(), s.what.begin(), s.what.end());
         }),
    hear(self, meter,
         [self](const mail::sums& s) {
           self->state.log->sums[static_cast<std::size_t>(s.rank)] = s.what;
         }),
    hear(self, meter,
         [self](const mail::microbatch_loss& loss) {
           auto& [name, shared_props, kept, news] = self->state;
           news->post_progress(kept->add(*shared_props.plan, loss));
         }),
    hear(self, meter,
         [self](const mail::expert_load& load) {
           const auto& plan = *self->state.shared.plan;
           self->state.log->loads.add(load.microbatch / plan.batches().microbatches,
                                      load.of_layer, load.rows, load.dropped);
         }),
  };
}

} // namespace troupe
