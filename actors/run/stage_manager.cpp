#include "actors/run/stage_manager.hpp"

#include "actors/checkpoints/whole_training.hpp"
#include "actors/run/whole_weights.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace troupe {

using namespace std::chrono_literals;

namespace {

/// Of a stage that saves nothing, or has not kept what it was asked for.
bool has_nothing(const mail::saved& one) {
  return one.versions.empty() && one.moments.empty();
}

} // namespace

// Stages that update together go on until all have made an update that is near, and end
// as if the run were to end there.
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
  if (run_.callbacks.report && now - last_report_ >= 100ms) {
    last_report_ = now;
    run_.callbacks.report(run_.board.latest());
  }
}

void stage_manager::evaluate(const notice_board::snapshot& parts) {
  const whole_weights all{run_.plan, parts};
  run_.callbacks.evaluate(parts.front().batches, all.buckets());
  ++evaluated_;
}

void stage_manager::serve_snapshots() {
  auto parts = run_.board.take_snapshot();
  if (!parts)
    return;
  if (stopping_) {
    for (; parts; parts = run_.board.take_snapshot())
      ++evaluated_;
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

/// Whether a checkpoint is due, of so many batches of the run.
bool stage_manager::is_on_disk(int batches) const {
  const int every = run_.plan.checkpoint_every;
  return every > 0 && (run_.plan.dims.before + batches) % every == 0;
}

void stage_manager::take_copied() {
  if (!run_.board.take_copied() || !copying_)
    return;
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
  begin_saving({batches});
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

std::shared_ptr<const saved_training> stage_manager::recall() {
  take_copied();
  if (!kept_ || run_.others == nullptr)
    return {};
  const auto& plan = run_.plan;
  post(run_.meter, run_.coordinator, mail::recall{*kept_});
  training_copies all{plan.dims.before + *kept_, {}};
  const auto waits = [&] {
    for (int rank = 0; rank < plan.ranks(); ++rank)
      for (const auto& where : plan.hosted_by(rank))
        if (!run_.others->has_lost(rank)
            && std::ranges::find(all.all, where, &mail::saved::where) == all.all.end())
          return true;
    return false;
  };
  auto last = std::chrono::steady_clock::now();
  while (waits() && std::chrono::steady_clock::now() - last < plan.stall_timeout) {
    (void)go_on();
    for (auto& one : run_.board.take_recalled()) {
      last = std::chrono::steady_clock::now();
      all.all.push_back(std::move(one.copies));
    }
  }
  std::erase_if(all.all, has_nothing);
  auto whole = whole_of(plan, all, savers::all);
  if (!whole)
    return {};
  return std::make_shared<const saved_training>(std::move(*whole));
}

} // namespace troupe
