// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/local_run.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>
#include <utility>

namespace troupe {

using namespace std::chrono_literals;

local_run::local_run(std::shared_ptr<const run_plan> plan, part which,
                     const run_callbacks& callbacks)
  : plan_(std::move(plan)),
    interconnect_(virtual_clock_, plan_->machine.links, plan_->ranks()),
    resources_(*plan_, virtual_clock_, watch_, which.ranks,
               callbacks.disorder.make_device, which.groups, which.ended),
    log_(which.leads ? std::make_shared<run_log>(*plan_) : nullptr),
    runtime_(
      plan_->machine.clock, [this] { watch_.break_down(); }, callbacks.system),
    remote_actors_(which.make_remote_actors
                     ? which.make_remote_actors(runtime_.system(), shared())
                     : nullptr),
    registry_(shared(), resources_, log_, status_, remote_actors_.get(),
              callbacks.relays) {
  meter_.listen(callbacks.listener);
}

void local_run::gather() {
  resources_.set_visit(
    [this](const auto& report, const auto& works) { runtime_.visit(report, works); });
  try {
    registry_.spawn(runtime_.system());
  } catch (...) {
    registry_.count(runtime_);
    throw;
  }
  registry_.count(runtime_);
  registry_.wire();
}

/// Whether an actor that has received an exit message will never end.
bool local_run::is_lost(int looks) {
  constexpr int stuck = 100, lost = 4000; // looks of milliseconds
  return watch_.broken() || looks >= lost || (looks >= stuck && watch_.is_stuck());
}

void local_run::shut_down() {
  // looks from one exit message to the next, as memory for a message may have run out
  constexpr int often = 64;
  virtual_clock_.clear(); // messages under way hold buffers of pools
  interconnect_.clear();
  resources_.stop();
  const run_monitor::waiting counted{watch_};
  const auto has_ended = [&] { return runtime_.actors() == 0 && resources_.idle(); };
  for (int looks = 0; !has_ended() && !at_work_; ++looks) {
    try {
      if (looks % often == 0)
        registry_.send_exits();
      runtime_.settle();
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch)
    }
    at_work_ = is_lost(looks);
    if (!has_ended())
      std::this_thread::sleep_for(std::min(looks * 50us, 5000us));
  }
  if (at_work_)
    return;
  registry_.clear();
  remote_actors_.reset();
  runtime_.close();
}

namespace {

/// The runs that could not be ended, the last one first. They are never destroyed.
std::atomic<local_run*> left_at_work = nullptr;

} // namespace

void end_or_leave::operator()(local_run* ended) const {
  if (!ended->at_work())
    delete ended;
  else
    ended->previous_left = left_at_work.exchange(ended);
}

bool is_at_work() {
  return left_at_work.load() != nullptr;
}

} // namespace troupe
