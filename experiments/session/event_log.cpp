// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/event_log.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

double largest(const std::vector<int>& values) {
  return values.empty() ? 0 : *std::ranges::max_element(values);
}

} // namespace

event_log::event_log(const std::filesystem::path& folder, const std::string& command,
                     std::function<void(const std::string&)> complain)
  : complain_(std::move(complain)), command_(command) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    give_up("cannot make the folder " + folder.string() + ": " + failed.message());
    return;
  }
  auto file = event_file::in(folder);
  if (!file) {
    give_up(file.error());
    return;
  }
  file_.emplace(std::move(*file));
}

// At samples before the start, the losses that an earlier start wrote stay.
void event_log::begin(const run_plan& plan) {
  plan_ = &plan;
  if (file_) {
    const auto samples_before = total_of(run_samples{}, plan).count;
    // A start makes readers of the file drop all events from this step on.
    file_->add_start(samples_before > 0 ? samples_before + 1 : 0);
    file_->add_text(samples_before, "command",
                    "    " + command_); // Markdown: a verbatim line
  }
  write();
}

void event_log::add(const progress& p) {
  if (!file_)
    return;
  for (const auto& loss : p.losses)
    file_->add_scalar(total_of(run_samples{loss.samples}, *plan_).count, "loss",
                      loss.loss);
  for (const auto& update : p.updates) {
    const auto step = total_of(run_samples{update.samples}, *plan_).count;
    file_->add_scalar(step, "gradient_norm", update.norm);
    file_->add_scalar(step, "learning_rate", update.rate);
  }
  const double now = seconds_now();
  throughput_.add(now, static_cast<double>(p.samples));
  if (const auto rate = throughput_.rate(); rate && now - rate_at_ >= 1) {
    rate_at_ = now;
    file_->add_scalar(total_of(run_samples{p.samples}, *plan_).count,
                      "samples_per_second", *rate);
  }
  write();
}

void event_log::add_evaluation(total_samples seen, const score& s) {
  if (!file_)
    return;
  file_->add_scalar(seen.count, "evaluation/loss", s.loss);
  if (s.accuracy)
    file_->add_scalar(seen.count, "evaluation/accuracy", *s.accuracy);
  write();
}

void event_log::end(const run_account& run) {
  if (!file_ || run.result.outcome == ending::failed)
    return;
  const auto& sums = run.result.sums;
  const auto seen = total_of(run_samples{run.result.samples}, *plan_);
  const auto step = seen.count;
  if (run.timing() != timing_kind::shared) // else the bubble is not the schedule's
    file_->add_scalar(step, "schedule/bubble", sums.bubble());
  file_->add_scalar(step, "schedule/activations", largest(sums.peak_activations));
  file_->add_scalar(step, "schedule/weight_versions", largest(sums.weight_versions));
  file_->add_scalar(step, "schedule/staleness", largest(sums.max_staleness));
  if (run.evaluated && run.evaluated_to_end)
    add_evaluation(seen, *run.evaluated);
  write();
}

void event_log::write() {
  if (!file_)
    return;
  if (const auto error = file_->write(); !error.empty())
    give_up(error);
}

void event_log::give_up(const std::string& why) {
  file_.reset();
  complain_("--tensorboard: " + why + "; no more events are written");
}

} // namespace troupe
