// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/perform.hpp"

#include "actors/checkpoints/gathered_state.hpp"
#include "actors/mail/thrown.hpp"
#include "actors/run/distant_run.hpp"
#include "actors/run/gathered_parameters.hpp"
#include "actors/run/local_run.hpp"
#include "actors/run/real_run_loop.hpp"
#include "actors/run/virtual_run_loop.hpp"

#include <stdexcept>
#include <utility>

namespace troupe {

namespace {

/// A run from its devices to the result: actors are made and wired, run, and are ended.
/// Some actors, or all that compute, may be in other processes.
class whole_run {
public:
  whole_run(run_plan plan, run_callbacks callbacks, distant_run* remote_part)
    : plan_(std::make_shared<const run_plan>(std::move(plan))),
      callbacks_(std::move(callbacks)),
      remote_part_(remote_part),
      groups_(remote_part != nullptr ? remote_part->groups() : groups_here(*plan_)),
      local_run_(new local_run{
        plan_,
        {.ranks = remote_part != nullptr ? std::vector<int>{} : all_ranks(*plan_),
         .make_remote_actors =
           remote_part != nullptr ? remote_part->maker() : local_run::distant_maker{},
         .groups = groups_,
         .ended =
           [&interrupted = callbacks_.interrupted] {
             return interrupted != nullptr && *interrupted;
           }},
        callbacks_}) {
    // nop
  }

  /// Waits until all copies of the run's state have been released.
  ~whole_run() { await_saved(); }
  whole_run(const whole_run&) = delete;
  whole_run& operator=(const whole_run&) = delete;

  /// \throws exceptions from outside the actors
  run_result run();

private:
  std::unique_ptr<run_loop> make_run_loop();
  void run_actors();
  void save_end(run_loop& waiting);
  void await_saved() const {
    if (callbacks_.await_saved)
      callbacks_.await_saved();
  }
  run_status& status() const { return local_run_->status(); }

  std::shared_ptr<const run_plan> plan_;
  run_callbacks callbacks_;
  distant_run* remote_part_; // null: the whole run is here
  known_groups groups_;      // of GPUs
  std::unique_ptr<local_run, end_or_leave> local_run_;
  bool interrupted_ = false;
  double seconds_ = 0;
  std::vector<mail::collected> last_; // the state of all stages in the end
  std::shared_ptr<const training_state> recovered_;
  std::string recovery_error_;
};

std::unique_ptr<run_loop> whole_run::make_run_loop() {
  const managed_run run{*plan_,
                        callbacks_,
                        status(),
                        local_run_->runtime(),
                        local_run_->meter(),
                        local_run_->actors().coordinator(),
                        local_run_->clock(),
                        remote_part_};
  if (local_run_->real())
    return std::make_unique<real_run_loop>(run, local_run_->watch());
  return std::make_unique<virtual_run_loop>(run, local_run_->clock_of_virtual_time());
}

/// From the first message to the last.
void whole_run::run_actors() {
  local_run_->clock().restart();
  try {
    local_run_->gather();
  } catch (const not_made& error) {
    return status().post_failure(error.what());
  }
  if (remote_part_ != nullptr)
    remote_part_->begin(*local_run_);
  local_run_->begin();
  const auto waiting = make_run_loop();
  waiting->wait();
  seconds_ = static_cast<double>(local_run_->clock().now()) * 1e-9;
  if (status().finished())
    waiting->serve_snapshots();
  waiting->finish_saving();
  if (plan_->keep.weights && !status().failure())
    last_ = waiting->collect();
  if (!status().failure()) // the last may have come another way, and later
    waiting->serve_snapshots();
  interrupted_ = waiting->stopping();
  if (plan_->copies.checkpoint_every > 0 && !last_.empty() && !status().failure())
    save_end(*waiting);
  if (plan_->copies.keep_steps && status().failure()) {
    if (auto recovered = waiting->fetch_kept_state())
      recovered_ = std::move(*recovered);
    else
      recovery_error_ = recovered.error();
  }
}

/// Saves the last checkpoint: after all batches, or after the batches before an
/// interruption. Under schedules that keep versions, a rank may be ahead of the final
/// state, and may have dropped versions that are read from there on.
void whole_run::save_end(run_loop& waiting) {
  const auto& dims = plan_->dims;
  const auto batches = interrupted_ ? last_.front().updates : dims.steps;
  const bool may = !interrupted_ || (!plan_->sch.asynchronous() && batches > 0);
  if (may)
    waiting.save(static_cast<int>(batches));
}

run_result whole_run::run() {
  try {
    run_actors();
  } catch (...) {
    if (remote_part_ != nullptr)
      (void)remote_part_->end();
    local_run_->shut_down();
    throw;
  }
  std::vector<mail::node_report> reports;
  if (remote_part_ != nullptr)
    reports = remote_part_->end();
  auto failure = status().failure(); // and not failures while actors are ended
  local_run_->shut_down();
  if (callbacks_.watch)
    callbacks_.watch(status().take_actions());
  if (callbacks_.report)
    callbacks_.report(status().take_progress()); // the last progress
  run_result result;
  const bool at_work = local_run_->at_work();
  try {
    if (!at_work)
      result =
        measured(*plan_, local_run_->log(), local_run_->resources(),
                 local_run_->meter(), status().finished() && !interrupted_, reports);
    else if (!failure)
      failure = "some actors still run after the end of the run, and the results of "
                "the run are lost";
  } catch (const std::logic_error& error) { // weights are kept whatever the times say
    if (!failure)
      failure = error.what();
  }
  if (auto torn = count_updates(*plan_, last_, result); !torn.empty()) {
    failure = failure.value_or(torn);
    last_.clear();
  }
  auto& resources = local_run_->resources();
  (void)status().take_saved(); // came too late: no writer is left
  (void)status().take_kept_state();
  await_saved();
  // optimizers have ended, and so has the need for their memory
  if (!at_work)
    resources.release_optimizers();
  if (!status().failure() && !at_work) {
    keep_weights(*plan_, std::move(last_), resources.shared(), result);
    keep_versions(*plan_, std::move(local_run_->log().versions), result);
  }
  result.seconds = seconds_;
  result.gpu_groups = static_cast<int>(groups_.ids.size());
  result.ungrouped_reason = groups_.exclusion;
  if (remote_part_ != nullptr)
    result.clock_doubt = remote_part_->clock_doubt();
  if (failure)
    result.failure = *failure;
  result.recovered = std::move(recovered_);
  result.recovery_error = std::move(recovery_error_);
  result.outcome = failure        ? ending::failed
                   : interrupted_ ? ending::interrupted
                                  : ending::finished;
  return result;
}

} // namespace

run_result perform(run_plan plan, run_callbacks callbacks, distant_run* remote_part) {
  return whole_run{std::move(plan), std::move(callbacks), remote_part}.run();
}

} // namespace troupe
