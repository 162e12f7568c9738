#include "actors/run/recorder.hpp"

#include "actors/mail/failure.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

/// Microbatches of each data replica whose losses make one entry.
int entry_size(const run_plan& plan) {
  return plan.sch.local_rule() ? 1 : update_size(plan.sch, plan.dims);
}

} // namespace

loss_log::loss_log(const run_plan& plan)
  : plan_(plan), entries_(plan.keep_record ? 0 : most_entries) {
  // nop
}

/// Entry by entry, and in an entry replica by replica.
std::int64_t loss_log::place_of(int microbatch) const {
  const int share = plan_.dims.microbatches, of_all = share * plan_.data;
  const int data = microbatch % of_all / share;
  const int own = microbatch / of_all * share + microbatch % share;
  const int size = entry_size(plan_), first = own / size * size;
  const std::int64_t here = std::min(size, plan_.dims.total() - first);
  return std::int64_t{first} * plan_.data + data * here + (own - first);
}

progress loss_log::add(const mail::microbatch_loss& loss) {
  early_.emplace(place_of(loss.microbatch), loss);
  const auto whole = std::int64_t{entry_size(plan_)} * plan_.data,
             total = std::int64_t{plan_.dims.total()} * plan_.data;
  while (!early_.empty() && early_.begin()->first == next_) {
    const auto m = early_.extract(early_.begin()).mapped();
    ++next_;
    sum_.sum.loss += m.sum.loss;
    sum_.samples += m.samples;
    so_far_.samples += m.samples;
    if (next_ % whole == 0 || next_ == total)
      end_entry();
  }
  return so_far_;
}

void loss_log::end_entry() {
  const auto rows = plan_.work->whole.rows;
  const auto ended = std::exchange(sum_, {});
  so_far_.loss = ended.sum.loss / static_cast<double>(ended.samples * rows);
  entries_.add({*so_far_.loss, ended.samples}, [](entry& a, const entry& b) {
    const auto all = a.samples + b.samples;
    a.loss = (a.loss * static_cast<double>(a.samples)
              + b.loss * static_cast<double>(b.samples))
             / static_cast<double>(all);
    a.samples = all;
  });
}

std::vector<double> loss_log::losses() const {
  std::vector<double> result;
  for (const auto& e : entries_.entries())
    result.push_back(e.loss);
  return result;
}

std::vector<std::int64_t> loss_log::samples() const {
  std::vector<std::int64_t> result;
  std::int64_t seen = 0;
  for (const auto& e : entries_.entries())
    result.push_back(seen += e.samples);
  return result;
}

run_log::run_log(const run_plan& plan)
  : sums(static_cast<std::size_t>(plan.ranks())), losses(plan), plan_(plan) {
  if (plan.keep_record || plan.keep_first > 0)
    actions.resize(sums.size());
  if (!plan.model_times)
    return;
  modelled_.resize(sums.size());
  model_.emplace(plan, [this](int rank, const measured_action& s) {
    modelled_[static_cast<std::size_t>(rank)].add(s);
    keep(rank, s);
  });
}

void run_log::keep(int rank, const measured_action& s) {
  if (actions.empty())
    return;
  auto& row = actions[static_cast<std::size_t>(rank)];
  if (plan_.keep_record || std::ssize(row) < plan_.keep_first)
    row.push_back(s);
  else
    cut = true;
}

void run_log::add(int rank, const std::vector<measured_action>& ran) {
  for (const auto& s : ran)
    if (model_)
      model_->add(rank, s);
    else
      keep(rank, s);
}

std::optional<measures> run_log::modelled(bool finished) const {
  if (!model_)
    return {};
  if (finished)
    model_->check_end();
  return measures_of(modelled_, plan_.dims.stages);
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
         [self](const mail::samples& s) { self->state.log->add(s.rank, s.what); }),
    hear(self, meter,
         [self](const mail::sums& s) {
           self->state.log->sums[static_cast<std::size_t>(s.rank)] = s.what;
         }),
    hear(self, meter,
         [self](const mail::microbatch_loss& loss) {
           self->state.board->post_progress(self->state.log->losses.add(loss));
         }),
    hear(
      self, meter,
      [self](const mail::version_made& v) { self->state.log->versions.push_back(v); }),
    hear(self, meter,
         [self](const mail::expert_load& load) {
           const auto& plan = *self->state.shared.plan;
           self->state.log->loads.add(load.microbatch / plan.batches().microbatches,
                                      load.of_layer, load.rows, load.dropped);
         }),
  };
}

} // namespace troupe
