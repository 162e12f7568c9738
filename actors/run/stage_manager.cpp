// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/stage_manager.hpp"

#include "actors/checkpoints/whole_training.hpp"
#include "actors/run/awake_time.hpp"
#include "actors/run/whole_weights.hpp"

#include <algorithm>
#include <new>
#include <tuple>
#include <utility>

namespace troupe {

using namespace std::chrono_literals;

namespace {

/// True for a stage that saves nothing, or has not kept the requested state.
bool has_nothing(const mail::saved& one) {
  return one.versions.empty() && one.moments.empty();
}

} // namespace

// Stages that update together continue until all have finished the same update, which
// is near. Then these stages end as if the run were to end there.
void stage_manager::stop_if_interrupted() {
  const auto* const flag = run_.callbacks.interrupted;
  const bool interrupted = flag != nullptr && flag->load();
  if (interrupted && !std::exchange(stopping_, true))
    post(run_.meter, run_.coordinator, mail::stop{});
}

void stage_manager::pause_clocks() {
  run_.clock.pause();
  if (run_.others != nullptr)
    run_.others->pause();
}

void stage_manager::resume_clocks() {
  if (run_.others != nullptr)
    run_.others->resume();
  run_.clock.resume();
}

void stage_manager::report_now_and_then() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_report_ < 100ms)
    return;
  last_report_ = now;
  // also without a report: losses would pile up
  const auto latest = run_.board.take_progress();
  if (run_.callbacks.watch)
    run_.callbacks.watch(run_.board.take_actions());
  if (run_.callbacks.report)
    run_.callbacks.report(latest);
}

void stage_manager::evaluate(const notice_board::snapshot& parts) {
  const whole_weights all{run_.plan, parts};
  run_.callbacks.evaluate(parts.front().batches, all.buckets());
  count_evaluated(parts);
}

void stage_manager::count_evaluated(const notice_board::snapshot& parts) {
  ++evaluated_;
  evaluated_to_ = std::max(evaluated_to_, parts.front().batches);
}

void stage_manager::serve_snapshots() {
  auto parts = run_.board.take_snapshot();
  if (!parts)
    return;
  if (stopping_) {
    for (; parts; parts = run_.board.take_snapshot())
      count_evaluated(*parts);
    post(run_.meter, run_.coordinator, mail::proceed{evaluated_});
  } else if (rest()) {
    pause_clocks();
    for (; parts; parts = run_.board.take_snapshot())
      evaluate(*parts);
    resume_clocks();
    post(run_.meter, run_.coordinator, mail::proceed{evaluated_});
  }
}

void stage_manager::take_saved() {
  auto all = run_.board.take_saved();
  if (!all || !saving_)
    return;
  std::erase_if(*all, has_nothing);
  std::ranges::sort(*all, {}, [](const auto& one) {
    return std::tuple{one.where.stage, one.where.tensor, one.where.data};
  });
  const int batches = *std::exchange(saving_, {});
  run_.callbacks.save(
    training_copies{run_.plan.dims.before + batches, std::move(*all)});
}

/// Whether a checkpoint is due, after this many batches of the run.
bool stage_manager::is_on_disk(int batches) const {
  const int every = run_.plan.checkpoint_every;
  return every > 0 && (run_.plan.dims.before + batches) % every == 0;
}

/// Whether the evaluations up to this many batches of the run are done: a run that
/// resumes from a kept step makes none again.
bool stage_manager::has_evaluated(int batches) const {
  const auto& plan = run_.plan;
  const int all = plan.dims.before + batches, every = plan.evaluate_every;
  return !run_.plan.keep_steps || every == 0 || all / every * every <= evaluated_to_
         || all / every * every <= plan.dims.before;
}

void stage_manager::take_copied() {
  copied_ = copied_ || (run_.board.take_copied() && copying_);
  if (!copied_ || !has_evaluated(copying_->batches))
    return;
  copied_ = false;
  if (copying_->keep)
    kept_ = copying_->batches;
  copying_.reset();
  post(run_.meter, run_.coordinator, mail::go_on{});
}

void stage_manager::serve_checkpoint() {
  take_copied();
  take_saved();
  if (const auto batches = run_.board.take_checkpoint())
    due_ = mail::save{*batches, is_on_disk(*batches), run_.plan.keep_steps};
  if (!due_ || (due_->hand_over && saving_))
    return;
  copying_ = std::exchange(due_, {});
  begin_saving(*copying_);
}

void stage_manager::begin_saving(const mail::save& what) {
  if (what.hand_over) {
    if (const auto& wait = run_.callbacks.await_saved)
      wait();
    saving_ = what.batches;
  }
  post(run_.meter, run_.coordinator, mail::save{what});
}

void stage_manager::finish_saving() {
  take_saved(); // also of a run that has failed since
  while (saving_ && !run_.board.failure()) {
    run_.house.settle();
    serve_checkpoint();
    if (saving_ && !go_on())
      run_.board.post_failure("all ranks rest, and not all stages give copies");
  }
}

void stage_manager::save(int batches) {
  begin_saving({.batches = batches, .hand_over = true});
  finish_saving();
}

std::vector<mail::collected> stage_manager::collect() {
  post(run_.meter, run_.coordinator, mail::collect{});
  run_.house.settle();
  auto all = run_.board.take_collected();
  while (!all && !run_.board.failure()) {
    if (!go_on())
      run_.board.post_failure("all ranks rest, and not all stages give their weights");
    run_.house.settle();
    all = run_.board.take_collected();
  }
  return all.value_or(std::vector<mail::collected>{});
}

/// The stages whose copies of a step are requested.
class stage_manager::recalling {
public:
  recalling(stage_manager& by, int batches) : by_(by), batches_(batches) {
    const auto& plan = by_.run_.plan;
    for (int stage = 0; stage < plan.dims.stages; ++stage)
      for (int shard = 0; shard < plan.tensor; ++shard)
        for (int of = 0; of < plan.expert; ++of)
          stages_.push_back({{of, 0, stage, shard}, {}});
  }

  /// Asks stages that have not been asked and whose process is there. False if no
  /// answer is awaited.
  bool ask() {
    bool waits = false;
    for (auto& one : stages_) {
      if (one.copies)
        continue;
      const auto& plan = by_.run_.plan;
      auto& who = one.next;
      const auto before = who.data;
      while (who.data < plan.data && by_.run_.others->has_lost(plan.rank_of(who)))
        who.data += plan.expert; // the next replica with the same experts
      if (who.data >= plan.data)
        continue;
      waits = true;
      if (!std::exchange(one.asked, true) || who.data != before)
        post(by_.run_.meter, by_.run_.coordinator, mail::recall{batches_, who});
    }
    return waits;
  }

  /// Takes the answers so far; false if there are none.
  bool take() {
    auto all = by_.run_.board.take_recalled();
    for (auto& part : all)
      for (auto& one : stages_)
        if (one.next == part.copies.where && part.copies.batches == batches_)
          one.copies = std::move(part.copies);
    return !all.empty();
  }

  /// Returns all answers. \post no answer is left here
  training_copies copies() {
    training_copies result{by_.run_.plan.dims.before + batches_, {}};
    for (auto& one : stages_)
      if (one.copies && !has_nothing(*one.copies))
        result.all.push_back(std::move(*one.copies));
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

  stage_manager& by_;
  int batches_;
  std::vector<replicated_stage> stages_;
};

bool stage_manager::has_lost() const {
  for (int rank = 0; rank < run_.plan.ranks() && run_.others != nullptr; ++rank)
    if (run_.others->has_lost(rank))
      return true;
  return false;
}

tl::expected<std::shared_ptr<const saved_training>, std::string>
stage_manager::recall() {
  using problem = tl::unexpected<std::string>;
  take_copied();
  if (!kept_ || !has_lost())
    return problem{"no step was kept"};
  constexpr nanoseconds patience = 10'000'000'000; // with a process that sends nothing
  recalling asked{*this, *kept_};
  awake_time watched{1'000'000'000};
  nanoseconds silent = 0;
  std::int64_t moved = 0; // bytes
  const auto* const interrupted = run_.callbacks.interrupted;
  while (asked.ask() && silent < patience
         && (interrupted == nullptr || !interrupted->load())) {
    (void)go_on();
    silent += watched.look(wall_clock::steady());
    const auto now_moved = run_.others->moved();
    if (asked.take() || now_moved != moved)
      silent = 0;
    moved = now_moved;
  }
  asked.take();
  try {
    auto whole = whole_of(run_.plan, asked.copies(), savers::all);
    if (!whole)
      return problem{whole.error()};
    return std::make_shared<const saved_training>(std::move(*whole));
  } catch (const std::bad_alloc&) {
    return problem{"there is no memory for what was kept"};
  }
}

} // namespace troupe
