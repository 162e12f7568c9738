// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/run_loop.hpp"

#include "actors/checkpoints/gathered_state.hpp"
#include "actors/run/awake_time.hpp"
#include "actors/run/gathered_parameters.hpp"

#include <algorithm>
#include <new>
#include <tuple>
#include <utility>

namespace troupe {

using namespace std::chrono_literals;

namespace {

/// True for a stage that saves nothing, or has not kept the requested state.
bool has_nothing(const mail::saved& copies) {
  return copies.versions.empty() && copies.state.empty();
}

} // namespace

// Stages that update together continue until all have finished the same update, which
// is near. Then these stages end as if the run were to end there.
void run_loop::stop_if_interrupted() {
  const auto* const flag = run_.callbacks.interrupted;
  const bool interrupted = flag != nullptr && flag->load();
  if (interrupted && !std::exchange(stopping_, true))
    send_external(run_.meter, run_.coordinator, mail::stop{});
}

void run_loop::pause_clocks() {
  run_.clock.pause();
  if (run_.remote_part != nullptr)
    run_.remote_part->pause();
}

void run_loop::resume_clocks() {
  if (run_.remote_part != nullptr)
    run_.remote_part->resume();
  run_.clock.resume();
}

void run_loop::report_now_and_then() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_report_ < 100ms)
    return;
  last_report_ = now;
  // also without a report: losses would pile up
  const auto latest = run_.status.take_progress();
  if (run_.callbacks.watch)
    run_.callbacks.watch(run_.status.take_actions());
  if (run_.callbacks.report)
    run_.callbacks.report(latest);
}

void run_loop::evaluate(const run_status::snapshot& parts) {
  const gathered_parameters parameters{run_.plan, parts};
  run_.callbacks.evaluate(parts.front().batches, parameters.buckets());
  count_evaluated(parts);
}

void run_loop::count_evaluated(const run_status::snapshot& parts) {
  ++evaluated_;
  evaluated_to_ = std::max(evaluated_to_, parts.front().batches);
}

void run_loop::serve_snapshots() {
  auto parts = run_.status.take_snapshot();
  if (!parts)
    return;
  if (stopping_) {
    for (; parts; parts = run_.status.take_snapshot())
      count_evaluated(*parts);
    send_external(run_.meter, run_.coordinator, mail::resume{evaluated_});
  } else if (rest()) {
    pause_clocks();
    for (; parts; parts = run_.status.take_snapshot())
      evaluate(*parts);
    resume_clocks();
    send_external(run_.meter, run_.coordinator, mail::resume{evaluated_});
  }
}

void run_loop::take_saved() {
  auto copies = run_.status.take_saved();
  if (!copies || !saving_)
    return;
  std::erase_if(*copies, has_nothing);
  std::ranges::sort(*copies, {}, [](const auto& part) {
    return std::tuple{part.where.stage, part.where.tensor, part.where.data};
  });
  const int batches = *std::exchange(saving_, {});
  run_.callbacks.save(
    training_copies{run_.plan.dims.batches_before + batches, std::move(*copies)});
}

/// Whether a checkpoint is due, after this many batches of the run.
bool run_loop::is_on_disk(int batches) const {
  const int every = run_.plan.copies.checkpoint_every;
  return every > 0 && (run_.plan.dims.batches_before + batches) % every == 0;
}

/// Whether the evaluations up to this many batches of the run are done: a run that
/// resumes from a kept step makes none again.
bool run_loop::has_evaluated(int batches) const {
  const auto& plan = run_.plan;
  const int total_batches = plan.dims.batches_before + batches,
            every = plan.copies.evaluate_every;
  return !run_.plan.copies.keep_steps || every == 0
         || total_batches / every * every <= evaluated_to_
         || total_batches / every * every <= plan.dims.batches_before;
}

void run_loop::take_copied() {
  copied_ = copied_ || (run_.status.take_copied() && copying_);
  if (!copied_ || !has_evaluated(copying_->batches))
    return;
  copied_ = false;
  if (copying_->keep)
    kept_ = copying_->batches;
  copying_.reset();
  send_external(run_.meter, run_.coordinator, mail::resume_from_checkpoint{});
}

void run_loop::serve_checkpoint() {
  take_copied();
  take_saved();
  if (const auto batches = run_.status.take_checkpoint())
    due_ = mail::save{*batches, is_on_disk(*batches), run_.plan.copies.keep_steps};
  if (!due_ || (due_->hand_over && saving_))
    return;
  copying_ = std::exchange(due_, {});
  begin_saving(*copying_);
}

void run_loop::begin_saving(const mail::save& request) {
  if (request.hand_over) {
    if (const auto& wait = run_.callbacks.await_saved)
      wait();
    saving_ = request.batches;
  }
  send_external(run_.meter, run_.coordinator, mail::save{request});
}

void run_loop::finish_saving() {
  take_saved(); // also of a run that has failed since
  while (saving_ && !run_.status.failure()) {
    run_.runtime.settle();
    serve_checkpoint();
    if (saving_ && !advance())
      run_.status.post_failure(
        "all ranks are idle, but not all stages have sent copies");
  }
}

void run_loop::save(int batches) {
  begin_saving({.batches = batches, .hand_over = true});
  finish_saving();
}

std::vector<mail::collected> run_loop::collect() {
  send_external(run_.meter, run_.coordinator, mail::collect{});
  run_.runtime.settle();
  auto answers = run_.status.take_collected();
  while (!answers && !run_.status.failure()) {
    if (!advance())
      run_.status.post_failure(
        "all ranks are idle, but not all stages have sent weights");
    run_.runtime.settle();
    answers = run_.status.take_collected();
  }
  return answers.value_or(std::vector<mail::collected>{});
}

/// The stages whose copies of a step are requested.
class run_loop::state_fetch {
public:
  state_fetch(run_loop& loop, int batches) : loop_(loop), batches_(batches) {
    const auto& plan = loop_.run_.plan;
    for (int stage = 0; stage < plan.dims.stages; ++stage)
      for (int shard = 0; shard < plan.mesh[axis::tensor]; ++shard)
        for (int data = 0; data < plan.mesh[axis::expert]; ++data)
          stages_.push_back({{data, 0, stage, shard}, {}});
  }

  /// Asks stages that have not been asked and whose process is there. False if no
  /// answer is awaited.
  bool request() {
    bool waits = false;
    for (auto& entry : stages_) {
      if (entry.copies)
        continue;
      const auto& plan = loop_.run_.plan;
      auto& replica = entry.next;
      const auto previous_data = replica.data;
      while (replica.data < plan.mesh[axis::data]
             && loop_.run_.remote_part->has_lost(plan.rank_of(replica)))
        replica.data +=
          plan.mesh[axis::expert]; // the next replica with the same experts
      if (replica.data >= plan.mesh[axis::data])
        continue;
      waits = true;
      if (!std::exchange(entry.asked, true) || replica.data != previous_data)
        send_external(loop_.run_.meter, loop_.run_.coordinator,
                      mail::fetch_kept_state{batches_, replica});
    }
    return waits;
  }

  /// Takes the answers so far; false if there are none.
  bool receive() {
    auto answers = loop_.run_.status.take_kept_state();
    for (auto& part : answers)
      for (auto& entry : stages_)
        if (entry.next == part.copies.where && part.copies.batches == batches_)
          entry.copies = std::move(part.copies);
    return !answers.empty();
  }

  /// Returns all answers. \post no answer is left here
  training_copies copies() {
    training_copies result{loop_.run_.plan.dims.batches_before + batches_, {}};
    for (auto& entry : stages_)
      if (entry.copies && !has_nothing(*entry.copies))
        result.stages.push_back(std::move(*entry.copies));
    stages_.clear();
    return result;
  }

private:
  /// A stage, of data replicas that have the same state.
  struct replicated_stage {
    position next; // the replica that is asked
    std::optional<mail::saved> copies;
    bool asked = false;
  };

  run_loop& loop_;
  int batches_;
  std::vector<replicated_stage> stages_;
};

bool run_loop::has_lost() const {
  for (int rank = 0; rank < run_.plan.ranks() && run_.remote_part != nullptr; ++rank)
    if (run_.remote_part->has_lost(rank))
      return true;
  return false;
}

tl::expected<std::shared_ptr<const training_state>, std::string>
run_loop::fetch_kept_state() {
  using problem = tl::unexpected<std::string>;
  take_copied();
  if (!kept_ || !has_lost())
    return problem{"no step was kept"};
  constexpr nanoseconds silence_timeout =
    10'000'000'000; // with a process that sends nothing
  state_fetch fetch{*this, *kept_};
  awake_time watched{1'000'000'000};
  nanoseconds silent = 0;
  std::int64_t moved = 0; // bytes
  const auto* const interrupted = run_.callbacks.interrupted;
  while (fetch.request() && silent < silence_timeout
         && (interrupted == nullptr || !interrupted->load())) {
    (void)advance();
    silent += watched.look(wall_clock::steady());
    const auto now_moved = run_.remote_part->moved();
    if (fetch.receive() || now_moved != moved)
      silent = 0;
    moved = now_moved;
  }
  fetch.receive();
  try {
    auto whole = whole_of(run_.plan, fetch.copies(), savers::every_holder);
    if (!whole)
      return problem{whole.error()};
    return std::make_shared<const training_state>(std::move(*whole));
  } catch (const std::bad_alloc&) {
    return problem{"there is no memory for the kept steps"};
  }
}

} // namespace troupe
