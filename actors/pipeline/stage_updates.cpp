// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/stage_updates.hpp"

#include "messaging/mail/turns.hpp"
#include "plan/replica_rules.hpp"
#include "plan/sharding.hpp"

#include <stdexcept>
#include <utility>

namespace troupe {

stage_updates::stage_updates(const run_plan& plan, position where, stage_port& port,
                             const stage_work& work, stage_meetings& meetings,
                             stage_version_ledger& ledger)
  : plan_(plan),
    where_(where),
    port_(port),
    work_(work),
    meetings_(meetings),
    ledger_(ledger) {
  // nop
}

stage_updates::position_in_sum stage_updates::begin_backward() {
  const bool first = sums_begun_++ == 0;
  const int size = update_size(plan_.sch, plan_.dims) / plan_.directions();
  const bool is_last =
    ++backwards_begun_ == microbatches_of_direction(plan_.sch, plan_.dims);
  return {first, sums_begun_ == size || is_last};
}

void stage_updates::end_forward(int microbatch, forward_report reports) {
  if (reports.loss || !reports.loads.empty())
    forwards_.emplace(microbatch, std::move(reports));
}

void stage_updates::end_backward(int microbatch) {
  if (auto reports = forwards_.extract(microbatch))
    covered_.push_back(std::move(reports.mapped()));
  for (int d = 0; d < plan_.mesh[axis::data];
       ++d) // data replicas sum the same microbatch numbers
    if (d == where_.data || updates_are_by(plan_, update_by::all_replicas))
      samples_summed_ += plan_.samples_of(d, microbatch);
  ++backwards_ended_;
  // A snapshot is due after these batches. The parameters are up to date now, or after
  // the update that follows.
  const int share = plan_.dims.microbatches / plan_.directions();
  const auto total = backwards_ended_ + std::int64_t{plan_.dims.batches_before} * share;
  if (plan_.copies.evaluate_every > 0 && in_snapshot(plan_, where_)
      && total % (std::int64_t{plan_.copies.evaluate_every} * share) == 0)
    snapshot_due_ = static_cast<int>(total / share);
}

bool stage_updates::has_all_gradients() const {
  return backwards_ended_ == microbatches_of_direction(plan_.sch, plan_.dims);
}

void stage_updates::send_reports() {
  for (auto& reports : std::exchange(covered_, {})) {
    if (reports.loss)
      port_.report(*reports.loss);
    for (auto& load : reports.loads)
      port_.report(std::move(load));
  }
}

void stage_updates::begin(const action& a) {
  if (!reports_.empty()) {
    waits_ = a;
    return;
  }
  send_reports();
  work_.versions->keep_only(ledger_);
  const auto facts = ledger_.begin_update();
  under_way_ = true;
  sums_begun_ = 0;
  samples_updated_ += samples_summed_;
  meetings_.begin_update();
  update_ = {.action = a,
             .version = facts.from + 1,
             .versions_alive = ledger_.versions_alive(),
             .gradients = facts.gradients,
             .stalest = facts.stalest,
             .staleness = facts.staleness};
  auto buffers = work_.versions->prepare_update(facts);
  mail::update_request request{.measured = update_,
                               .samples = std::exchange(samples_summed_, 0),
                               .gradients = work_.gradients.buckets,
                               .from = std::move(buffers.from),
                               .to = std::move(buffers.to),
                               .save_previous = std::move(buffers.save_previous)};
  if (reports_buckets(plan_) && !reports_immediately(plan_))
    notify_all_buckets(request.gradients);
  port_.send(
    {{role::optimizer_shard, where_}, meeting_kind::directions, std::move(request)});
}

void stage_updates::notify_all_buckets(const std::vector<buffer>& gradients) {
  const auto notify = port_.notifier();
  for (std::size_t b = 0; b < gradients.size(); ++b)
    notify({where_.direction, static_cast<int>(b), gradients[b]});
}

void stage_updates::end(const mail::updated& last) {
  update_.versions_alive = ledger_.versions_alive();
  mail::set_times(update_, last);
  under_way_ = false;
  ended_ = true;
  ledger_.end_update();
  if (auto part = last.part) {
    part->version = ledger_.newest();
    port_.report(*part);
  }
  if (plan_.keep.versions)
    copy_last_version();
  copy_if_due();
}

bool stage_updates::take_over() {
  return reports_.empty() && std::exchange(ended_, false);
}

void stage_updates::copy_if_due() {
  if (snapshot_due_ == 0 || under_way_)
    return;
  auto snapshot_copy = work_.versions->copy(ledger_.newest());
  copy(
    std::move(snapshot_copy.run),
    [this, part = mail::snapshot{std::exchange(snapshot_due_, 0), where_,
                                 std::move(snapshot_copy.to)}] { port_.report(part); });
}

/// Copies on the device while passes run, as passes only read the parameters; without
/// such a device, at once.
/// \param run writes the copy; may be empty
/// \param report sends the copy, after `run`
void stage_updates::copy(std::function<void()> run, std::function<void()> report) {
  if (!port_.copies_aside()) {
    if (run)
      run();
    return report();
  }
  reports_.push_back(std::move(report));
  port_.compute({.kind = op_count, .stage = where_.stage, .run = std::move(run)},
                copying());
}

void stage_updates::end_copy() {
  if (reports_.empty())
    throw std::logic_error("a copy has ended that was not requested");
  reports_.front()();
  reports_.pop_front();
  if (waits_)
    begin(*std::exchange(waits_, {}));
}

/// The newest version's number. \throws std::logic_error if the update that makes the
/// version is under way
int stage_updates::newest() const {
  if (under_way_)
    throw std::logic_error("its update " + std::to_string(ledger_.newest())
                           + " was not made");
  return ledger_.newest();
}

mail::collected stage_updates::collect() const {
  return {where_, newest(), samples_updated_, work_.versions->parameters(newest()),
          work_.gradients.buckets};
}

std::vector<aged_version> stage_updates::versions() const {
  std::vector<aged_version> result;
  for (int age = 0, left = ledger_.versions_alive(); left > 0; ++age)
    if (const int version = newest() - age; ledger_.knows(version)) {
      result.push_back({age, work_.versions->stored(version)});
      --left;
    }
  return result;
}

void stage_updates::copy_last_version() {
  const auto message = std::make_shared<mail::version_made>();
  message->where = where_;
  message->version = ledger_.newest();
  copy(
    [message,
     parameters =
       arrays_of(shared_out::parameters, work_.versions->parameters(message->version)),
     gradients = arrays_of(shared_out::gradients, work_.gradients.buckets)] {
      for (const auto& array : parameters)
        message->parameters.emplace_back(array.begin(), array.end());
      for (const auto& array : gradients)
        message->gradients.emplace_back(array.begin(), array.end());
    },
    [this, message] { port_.report(std::move(*message)); });
}

/// The values that the stage holds of each bucket: the whole bucket, or a share.
std::vector<std::span<const float>>
stage_updates::arrays_of(shared_out kind, const std::vector<buffer>& buckets) const {
  const auto held = held_of(plan_, kind, where_);
  std::vector<std::span<const float>> result;
  for (std::size_t b = 0; b < buckets.size(); ++b)
    result.emplace_back(buckets[b].data(), static_cast<std::size_t>(held[b]));
  return result;
}

} // namespace troupe
