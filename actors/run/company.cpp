// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/company.hpp"

#include "actors/checkpoints/whole_training.hpp"
#include "actors/mail/thrown.hpp"
#include "actors/run/distant_run.hpp"
#include "actors/run/ensemble.hpp"
#include "actors/run/real_manager.hpp"
#include "actors/run/virtual_manager.hpp"
#include "actors/run/whole_weights.hpp"

#include <stdexcept>
#include <utility>

namespace troupe {

namespace {

/// A run from its devices to the result: actors are made and wired, run, and are ended.
/// Some actors, or all that compute, may be in other processes.
class company {
public:
  company(run_plan plan, run_callbacks callbacks, distant_run* others)
    : plan_(std::make_shared<const run_plan>(std::move(plan))),
      callbacks_(std::move(callbacks)),
      others_(others),
      groups_(others != nullptr ? others->groups() : groups_here(*plan_)),
      here_(new ensemble{
        plan_,
        {.ranks = others != nullptr ? std::vector<int>{} : all_ranks(*plan_),
         .elsewhere = others != nullptr ? others->maker() : ensemble::distant_maker{},
         .groups = groups_,
         .ended = [&by = callbacks_.interrupted] { return by != nullptr && *by; }},
        callbacks_}) {
    // nop
  }

  /// Waits until all copies of the run's state have been released.
  ~company() { await_saved(); }
  company(const company&) = delete;
  company& operator=(const company&) = delete;

  /// \throws exceptions from outside the actors
  run_result run();

private:
  std::unique_ptr<stage_manager> manager();
  void play();
  void save_end(stage_manager& waiting);
  void await_saved() const {
    if (callbacks_.await_saved)
      callbacks_.await_saved();
  }
  notice_board& board() const { return here_->board(); }

  std::shared_ptr<const run_plan> plan_;
  run_callbacks callbacks_;
  distant_run* others_; // null: the whole run is here
  known_groups groups_; // of GPUs
  std::unique_ptr<ensemble, end_or_leave> here_;
  bool interrupted_ = false;
  double seconds_ = 0;
  std::vector<mail::collected> last_; // the state of all stages in the end
  std::shared_ptr<const saved_training> survives_;
  std::string lost_for_;
};

std::unique_ptr<stage_manager> company::manager() {
  const managed_run run{*plan_,         callbacks_,     board(),
                        here_->house(), here_->meter(), here_->actors().coordinator(),
                        here_->clock(), others_};
  if (here_->real())
    return std::make_unique<real_manager>(run, here_->watch());
  return std::make_unique<virtual_manager>(run, here_->clock_of_virtual_time());
}

/// From the first message to the last.
void company::play() {
  here_->clock().restart();
  try {
    here_->gather();
  } catch (const not_made& wrong) {
    return board().post_failure(wrong.what());
  }
  if (others_ != nullptr)
    others_->begin(*here_);
  here_->begin();
  const auto waiting = manager();
  waiting->wait();
  seconds_ = static_cast<double>(here_->clock().now()) * 1e-9;
  if (board().finished())
    waiting->serve_snapshots();
  waiting->finish_saving();
  if (plan_->keep_weights && !board().failure())
    last_ = waiting->collect();
  if (!board().failure()) // the last may have come another way, and later
    waiting->serve_snapshots();
  interrupted_ = waiting->stopping();
  if (plan_->checkpoint_every > 0 && !last_.empty() && !board().failure())
    save_end(*waiting);
  if (plan_->keep_steps && board().failure()) {
    if (auto found = waiting->recall())
      survives_ = std::move(*found);
    else
      lost_for_ = found.error();
  }
}

/// Saves the last checkpoint: after all batches, or after the batches before an
/// interruption. Under schedules that keep versions, a rank may be ahead of the final
/// state, and may have dropped versions that are read from there on.
void company::save_end(stage_manager& waiting) {
  const auto& dims = plan_->dims;
  const auto batches = interrupted_ ? last_.front().updates : dims.steps;
  const bool may = !interrupted_ || (!plan_->sch.asynchronous() && batches > 0);
  if (may)
    waiting.save(static_cast<int>(batches));
}

run_result company::run() {
  try {
    play();
  } catch (...) {
    if (others_ != nullptr)
      (void)others_->end();
    here_->come_home();
    throw;
  }
  std::vector<mail::node_report> reports;
  if (others_ != nullptr)
    reports = others_->end();
  auto failure = board().failure(); // and not failures while actors are ended
  here_->come_home();
  if (callbacks_.watch)
    callbacks_.watch(board().take_actions());
  if (callbacks_.report)
    callbacks_.report(board().take_progress()); // the last progress
  run_result result;
  const bool at_work = here_->at_work();
  try {
    if (!at_work)
      result = measured(*plan_, here_->log(), here_->equipped(), here_->meter(),
                        board().finished() && !interrupted_, reports);
    else if (!failure)
      failure = "its actors could not be ended";
  } catch (const std::logic_error& wrong) { // weights are kept whatever the times say
    if (!failure)
      failure = wrong.what();
  }
  if (auto torn = count_updates(*plan_, last_, result); !torn.empty()) {
    failure = failure.value_or(torn);
    last_.clear();
  }
  auto& equipped = here_->equipped();
  (void)board().take_saved(); // came too late: no writer is left
  (void)board().take_recalled();
  await_saved();
  // optimizers have ended, and so has the need for their memory
  if (!at_work)
    equipped.release_optimizers();
  if (!board().failure() && !at_work) {
    keep_weights(*plan_, std::move(last_), equipped.shared(), result);
    keep_versions(*plan_, std::move(here_->log().versions), result);
  }
  result.seconds = seconds_;
  result.gpu_groups = static_cast<int>(groups_.ids.size());
  result.ungrouped = groups_.absence;
  if (others_ != nullptr)
    result.clock_doubt = others_->clock_doubt();
  if (failure)
    result.failure = *failure;
  result.survives = std::move(survives_);
  result.lost_for = std::move(lost_for_);
  result.how = failure        ? ending::failed
               : interrupted_ ? ending::interrupted
                              : ending::finished;
  return result;
}

} // namespace

run_result perform(run_plan plan, run_callbacks callbacks, distant_run* others) {
  return company{std::move(plan), std::move(callbacks), others}.run();
}

} // namespace troupe
