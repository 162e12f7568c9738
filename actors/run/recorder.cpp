// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/recorder.hpp"

#include "actors/mail/failure.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe {

namespace {

/// Microbatches of each data replica whose losses make one entry.
int entry_size(const run_plan& plan) {
  return plan.sch.local_rule() ? 1 : update_size(plan.sch, plan.dims);
}

} // namespace

loss_log::loss_log(const run_plan& plan)
  : plan_(plan),
    entries_(plan.keep.record ? 0 : most_entries),
    ends_(plan.keep.record ? 0 : most_entries) {
  // nop
}

/// The index of a microbatch's loss: entry by entry, and in an entry replica by
/// replica.
std::int64_t loss_log::loss_index_of(int microbatch) const {
  const int share = plan_.dims.microbatches, of_all = share * plan_.mesh[axis::data];
  const int data = microbatch % of_all / share;
  const int replica_microbatch = microbatch / of_all * share + microbatch % share;
  const int size = entry_size(plan_), first = replica_microbatch / size * size;
  const std::int64_t entry_microbatches = std::min(size, plan_.dims.total() - first);
  return std::int64_t{first} * plan_.mesh[axis::data] + data * entry_microbatches
         + (replica_microbatch - first);
}

bool loss_log::ends_entry(std::int64_t loss_index) const {
  return loss_index % (std::int64_t{entry_size(plan_)} * plan_.mesh[axis::data]) == 0
         || loss_index == std::int64_t{plan_.dims.total()} * plan_.mesh[axis::data];
}

progress loss_log::add(const mail::microbatch_loss& loss) {
  so_far_.losses.clear();
  const auto loss_index = loss_index_of(loss.microbatch);
  if (loss_index >= next_) // else the loss is a repetition
    early_.emplace(loss_index, loss);
  while (!early_.empty() && early_.begin()->first == next_) {
    const auto m = early_.extract(early_.begin()).mapped();
    ++next_;
    sum_.sum.loss += m.sum.loss;
    sum_.samples += m.samples;
    so_far_.samples += m.samples;
    if (ends_entry(next_))
      end_entry();
  }
  match_ends();
  return so_far_;
}

void loss_log::end_entry() {
  const auto rows = plan_.work->whole.rows;
  const auto ended = std::exchange(sum_, {});
  ++entries_added_;
  so_far_.loss = ended.sum.loss / static_cast<double>(ended.samples * rows);
  so_far_.losses.push_back({so_far_.samples, *so_far_.loss});
  entries_.add({*so_far_.loss, ended.samples}, [](entry& a, const entry& b) {
    const auto total_samples = a.samples + b.samples;
    a.loss = (a.loss * static_cast<double>(a.samples)
              + b.loss * static_cast<double>(b.samples))
             / static_cast<double>(total_samples);
    a.samples = total_samples;
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

std::int64_t loss_log::missing(bool to_end) const {
  const auto expected =
    to_end ? std::int64_t{plan_.dims.total()} * plan_.mesh[axis::data]
    : early_.empty() || stops_with(plan_, plan_.ranks() - 1) != 0
      ? next_ + std::ssize(early_) // replicas end after different updates
      : early_.rbegin()->first + 1;
  return expected - next_ - std::ssize(early_);
}

void loss_log::ended(int microbatch, nanoseconds when) {
  if (const auto loss_index = loss_index_of(microbatch); loss_index >= next_end_)
    early_ends_.emplace(loss_index, when);
  match_ends();
}

/// Adds the ends of forwards whose losses have come.
void loss_log::match_ends() {
  while (!early_ends_.empty() && early_ends_.begin()->first == next_end_
         && next_end_ < next_) {
    last_end_ = std::max(last_end_, early_ends_.extract(early_ends_.begin()).mapped());
    if (!ends_entry(++next_end_))
      continue;
    ++ends_added_;
    ends_.add(std::exchange(last_end_, 0),
              [](auto& first, const auto& next) { first = std::max(first, next); });
  }
}

std::vector<nanoseconds> loss_log::ends() const {
  const auto& result = ends_.entries();
  return ends_added_ == entries_added_ ? result : std::vector<nanoseconds>{};
}

update_log::update_log(const run_plan& plan)
  : parts_(norm_shards(plan).size()), entries_(plan.keep.record ? 0 : most_entries) {
  // nop
}

std::vector<update_so_far> update_log::add(const mail::update_part& part) {
  if (parts_ == 0 || part.version < next_)
    return {}; // another shard, on a GPU, measures nothing; or a repetition
  auto& arrived = early_[part.version];
  const auto& where = part.where;
  arrived.squares.emplace(std::array{where.data, where.stage, where.tensor},
                          part.squares);
  arrived.samples = part.samples;
  arrived.rate = part.rate;
  std::vector<update_so_far> result;
  while (!early_.empty() && early_.begin()->first == next_
         && early_.begin()->second.squares.size() == parts_) {
    const auto whole = early_.extract(early_.begin()).mapped();
    ++next_;
    double squares = 0;
    for (const auto& [shard, value] : whole.squares) // in one order, always
      squares += value;
    samples_ += whole.samples;
    const double norm = std::sqrt(squares) / static_cast<double>(whole.samples);
    result.push_back({samples_, norm, whole.rate});
    entries_.add({norm, whole.rate, 1}, [](entry& a, const entry& b) {
      const auto total = a.updates + b.updates;
      const auto mean = [&](double x, double y) {
        return (x * static_cast<double>(a.updates) + y * static_cast<double>(b.updates))
               / static_cast<double>(total);
      };
      a = {mean(a.norm, b.norm), mean(a.rate, b.rate), total};
    });
  }
  return result;
}

std::vector<double> update_log::norms() const {
  std::vector<double> result;
  for (const auto& e : entries_.entries())
    result.push_back(e.norm);
  return result;
}

std::vector<double> update_log::rates() const {
  std::vector<double> result;
  for (const auto& e : entries_.entries())
    result.push_back(e.rate);
  return result;
}

run_log::run_log(const run_plan& plan)
  : sums(static_cast<std::size_t>(plan.ranks())),
    losses(plan),
    updates(plan),
    plan_(plan) {
  if (plan.keep.record || plan.keep.first_actions > 0)
    actions.resize(sums.size());
  if (!plan.observed.model_times)
    return;
  modelled_.resize(sums.size());
  model_.emplace(plan, [this](int rank, const measured_action& s) {
    modelled_[static_cast<std::size_t>(rank)].add(s);
    keep(rank, s);
    note_loss(rank, s);
  });
}

void run_log::keep(int rank, const measured_action& s) {
  if (plan_.observed.watched)
    fresh_.push_back({rank, s});
  if (actions.empty())
    return;
  auto& row = actions[static_cast<std::size_t>(rank)];
  if (plan_.keep.record || std::ssize(row) < plan_.keep.first_actions)
    row.push_back(s);
  else
    cut = true;
}

/// With modelled times: records the time at which a loss would have been known.
void run_log::note_loss(int rank, const measured_action& s) {
  const bool gives_loss = plan_.work && s.action.op == op::forward && !s.part
                          && s.expert < 0 && plan_.shard_of(rank) == 0
                          && s.action.stage == plan_.dims.stages - 1;
  if (gives_loss)
    losses.ended(plan_.microbatch_of_all(plan_.data_of(rank), s.action.microbatch),
                 s.end);
}

progress run_log::add(const mail::microbatch_loss& loss) {
  if (!model_)
    losses.ended(loss.microbatch, loss.ended);
  return losses.add(loss);
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
recorder(recorder_actor::stateful_pointer<recorder_state> self, run_context shared,
         std::shared_ptr<run_log> log, std::shared_ptr<run_status> status) {
  report_failures(self);
  auto& state = self->state;
  state.shared = std::move(shared);
  state.log = std::move(log);
  state.status = std::move(status);
  auto& meter = *state.shared.meter;
  return {
    on_message(self, meter,
               [self](const mail::samples& s) {
                 self->state.log->add(s.rank, s.actions);
                 self->state.status->post_actions(self->state.log->take_fresh());
               }),
    on_message(self, meter,
               [self](const mail::sums& s) {
                 self->state.log->sums[static_cast<std::size_t>(s.rank)] = s.totals;
               }),
    on_message(self, meter,
               [self](const mail::microbatch_loss& loss) {
                 self->state.status->post_progress(self->state.log->add(loss));
               }),
    on_message(self, meter,
               [self](const mail::update_part& part) {
                 self->state.status->post_updates(self->state.log->updates.add(part));
               }),
    on_message(
      self, meter,
      [self](const mail::version_made& v) { self->state.log->versions.push_back(v); }),
    on_message(self, meter,
               [self](const mail::expert_load& load) {
                 const auto& plan = *self->state.shared.plan;
                 self->state.log->loads.add(load.microbatch
                                              / plan.batches().microbatches,
                                            load.of_layer, load.rows, load.dropped);
               }),
  };
}

} // namespace troupe
