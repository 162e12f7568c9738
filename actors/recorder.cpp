#include "actors/recorder.hpp"

#include "actors/failure.hpp"

namespace troupe {

namespace {

/// Microbatches whose losses make one entry.
int entry_size(const run_plan& plan) {
  return plan.sch.local_rule() ? 1 : update_size(plan.sch, plan.dims);
}

} // namespace

run_log::run_log(const run_plan& plan)
  : sums(static_cast<std::size_t>(plan.dims.stages)) {
  if (plan.keep_record)
    actions.resize(static_cast<std::size_t>(plan.dims.stages));
  if (plan.work)
    microbatches.resize(static_cast<std::size_t>(plan.dims.total()));
}

progress run_log::add(const run_plan& plan, const mail::microbatch_loss& loss) {
  microbatches[static_cast<std::size_t>(loss.microbatch)] = loss;
  const auto there = [this](int m) {
    return m < static_cast<int>(microbatches.size())
           && microbatches[static_cast<std::size_t>(m)].samples > 0;
  };
  while (there(complete_))
    ++complete_;
  progress result{.samples = plan.batches().first_of(complete_), .loss = {}};
  const int size = entry_size(plan), end = complete_ / size * size;
  double sum = 0;
  std::int64_t samples = 0;
  for (int m = std::max(end - size, 0); m < end; ++m) {
    sum += microbatches[static_cast<std::size_t>(m)].sum.loss;
    samples += microbatches[static_cast<std::size_t>(m)].samples;
  }
  if (samples > 0)
    result.loss = sum / static_cast<double>(samples * plan.work->whole.rows);
  return result;
}

void run_log::losses(const run_plan& plan, std::vector<double>& loss,
                     std::vector<std::int64_t>& samples) const {
  const int size = entry_size(plan), total = static_cast<int>(microbatches.size());
  for (int first = 0; first < complete_; first += size) {
    const int last = std::min(first + size, total);
    if (last > complete_)
      return;
    double sum = 0;
    std::int64_t count = 0;
    for (int m = first; m < last; ++m) {
      sum += microbatches[static_cast<std::size_t>(m)].sum.loss;
      count += microbatches[static_cast<std::size_t>(m)].samples;
    }
    loss.push_back(sum / static_cast<double>(count * plan.work->whole.rows));
    samples.push_back(plan.batches().first_of(last));
  }
}

recorder_actor::behavior_type
recorder(recorder_actor::stateful_pointer<recorder_state> self, props shared,
         std::shared_ptr<run_log> log, std::shared_ptr<notice_board> board) {
  auto& state = self->state;
  state.shared = std::move(shared);
  state.log = std::move(log);
  state.board = std::move(board);
  report_failures(self);
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
  };
}

} // namespace troupe
