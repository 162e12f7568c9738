#include "actors/run/stage_manager.hpp"

#include "actors/checkpoints/whole_training.hpp"
#include "actors/run/whole_weights.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace troupe {

using namespace std::chrono_literals;

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
  std::erase_if(
    *all, [](const auto& one) { return one.versions.empty() && one.moments.empty(); });
  std::ranges::sort(*all, {}, [](const auto& one) {
    return std::tuple{one.where.stage, one.where.tensor, one.where.data};
  });
  const int batches = *std::exchange(saving_, {});
  run_.callbacks.save(
    training_copies{run_.plan.dims.before + batches, std::move(*all)});
}

void stage_manager::serve_checkpoint() {
  if (run_.board.take_copied() && std::exchange(ranks_wait_, false))
    post(run_.meter, run_.coordinator, mail::go_on{});
  take_saved();
  if (saving_)
    return;
  if (const auto batches = run_.board.take_checkpoint()) {
    ranks_wait_ = true;
    begin_saving(*batches);
  }
}

void stage_manager::begin_saving(int batches) {
  if (const auto& wait = run_.callbacks.await_saved)
    wait();
  saving_ = batches;
  post(run_.meter, run_.coordinator, mail::save{batches});
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
  begin_saving(batches);
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

} // namespace troupe
