// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/ensemble.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>
#include <utility>

namespace troupe {

using namespace std::chrono_literals;

ensemble::ensemble(std::shared_ptr<const run_plan> plan, part which,
                   const run_callbacks& told)
  : plan_(std::move(plan)),
    interconnect_(virtual_clock_, plan_->machines, plan_->ranks()),
    equipment_(*plan_, virtual_clock_, watch_, which.ranks, told.disorder.make_device,
               which.groups, which.ended),
    log_(which.leads ? std::make_shared<run_log>(*plan_) : nullptr),
    house_(
      plan_->clock, [this] { watch_.break_down(); }, told.system),
    elsewhere_(which.elsewhere ? which.elsewhere(house_.system(), shared()) : nullptr),
    roster_(shared(), equipment_, log_, board_, elsewhere_.get(), told.relays) {
  meter_.listen(told.listener);
}

void ensemble::gather() {
  equipment_.set_visit(
    [this](const auto& speak, const auto& works) { house_.visit(speak, works); });
  try {
    roster_.spawn(house_.system());
  } catch (...) {
    roster_.count(house_);
    throw;
  }
  roster_.count(house_);
  roster_.wire();
}

/// Whether an actor that has received an exit message will never end.
bool ensemble::is_lost(int looks) {
  constexpr int stuck = 100, lost = 4000; // looks of milliseconds
  return watch_.broken() || looks >= lost
         || (looks >= stuck && watch_.somebody_is_stuck());
}

void ensemble::come_home() {
  // looks from one exit message to the next, as memory for a message may have run out
  constexpr int often = 64;
  virtual_clock_.clear(); // messages under way hold buffers of pools
  interconnect_.clear();
  equipment_.stop();
  const run_watch::waiting counted{watch_};
  const auto at_home = [&] { return house_.actors() == 0 && equipment_.idle(); };
  for (int looks = 0; !at_home() && !at_work_; ++looks) {
    try {
      if (looks % often == 0)
        roster_.dismiss();
      house_.settle();
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch)
    }
    at_work_ = is_lost(looks);
    if (!at_home())
      std::this_thread::sleep_for(std::min(looks * 50us, 5000us));
  }
  if (at_work_)
    return;
  roster_.clear();
  elsewhere_.reset();
  house_.close();
}

namespace {

/// The runs that could not be ended, the last one first. They are never destroyed.
std::atomic<ensemble*> left_at_work = nullptr;

} // namespace

void end_or_leave::operator()(ensemble* ended) const {
  if (!ended->at_work())
    delete ended;
  else
    ended->left_before = left_at_work.exchange(ended);
}

bool is_at_work() {
  return left_at_work.load() != nullptr;
}

} // namespace troupe
