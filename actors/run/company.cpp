#include "actors/run/company.hpp"

#include "actors/run/actor_house.hpp"
#include "actors/run/equipment.hpp"
#include "actors/run/real_manager.hpp"
#include "actors/run/recorder.hpp"
#include "actors/run/roster.hpp"
#include "actors/run/save_training.hpp"
#include "actors/run/virtual_manager.hpp"
#include "actors/run/whole_weights.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <thread>

namespace troupe {

namespace {

using namespace std::chrono_literals;

/// A run from its equipment to its result: actors are made and wired, play, and come
/// home.
class company {
public:
  company(run_plan plan, run_callbacks callbacks)
    : plan_(std::make_shared<const run_plan>(std::move(plan))),
      callbacks_(std::move(callbacks)),
      interconnect_(virtual_clock_, plan_->machines, plan_->ranks()),
      log_(std::make_shared<run_log>(*plan_)),
      board_(std::make_shared<notice_board>()) {
    meter_.listen(callbacks_.listener);
  }

  /// \throws what goes wrong outside the actors
  run_result run();

  /// Whether somebody is still at work, who could not be ended: then nothing of this
  /// may be.
  bool at_work() const { return at_work_; }
  company* left_before = nullptr; ///< Another of those.

private:
  bool real() const { return plan_->clock == clock_kind::real; }
  props shared() {
    return {plan_, &meter_, real() ? nullptr : &virtual_clock_,
            real() ? nullptr : &interconnect_};
  }

  std::unique_ptr<stage_manager> manager();
  void play();
  void save_end();
  void save(int batches, const std::vector<mail::collected>& parts);
  void come_home();
  bool is_lost(int looks);

  std::shared_ptr<const run_plan> plan_;
  run_callbacks callbacks_;
  mail_meter meter_;
  wall_clock wall_clock_;
  virtual_clock virtual_clock_;
  interconnect interconnect_;
  run_watch watch_{*plan_, wall_clock_};
  equipment equipment_{*plan_, virtual_clock_, watch_, all_ranks(*plan_),
                       callbacks_.disorder.make_device};
  bool interrupted_ = false;
  bool at_work_ = false;
  double seconds_ = 0;
  std::vector<mail::collected> last_; // what stages have in the end

  // These may hold buffers, so they go before the pools do.
  std::shared_ptr<run_log> log_;
  std::shared_ptr<notice_board> board_;
  actor_house house_{plan_->clock, [this] { watch_.break_down(); }};
  roster roster_{shared(), equipment_, log_, board_};
};

std::unique_ptr<stage_manager> company::manager() {
  const managed_run run{*plan_,
                        callbacks_,
                        *board_,
                        house_,
                        meter_,
                        roster_.coordinator(),
                        wall_clock_,
                        [this](int batches, const std::vector<mail::collected>& parts) {
                          save(batches, parts);
                        }};
  if (real())
    return std::make_unique<real_manager>(run, watch_);
  return std::make_unique<virtual_manager>(run, virtual_clock_);
}

/// From the first message to the last.
void company::play() {
  equipment_.set_visit(
    [this](const auto& speak, const auto& works) { house_.visit(speak, works); });
  wall_clock_.restart();
  roster_.spawn(house_.system());
  roster_.wire();
  const auto waiting = manager();
  waiting->wait();
  seconds_ = static_cast<double>(wall_clock_.now()) * 1e-9;
  if (board_->finished())
    waiting->serve_snapshots();
  if (plan_->keep_weights && !board_->failure())
    last_ = waiting->collect();
  interrupted_ = waiting->stopping();
  if (plan_->checkpoint_every > 0 && !last_.empty())
    save_end();
}

/// The last checkpoint: of all batches, or of those before an interruption. Under
/// schedules that keep versions a rank may be beyond what it
/// ends with, and has forgotten some that are read from there on.
void company::save_end() {
  const auto& dims = plan_->dims;
  const auto batches = interrupted_ ? last_.front().updates : dims.steps;
  const bool may = !interrupted_ || (!plan_->sch.asynchronous() && batches > 0);
  if (may)
    save(static_cast<int>(batches), last_);
}

void company::save(int batches, const std::vector<mail::collected>& parts) {
  callbacks_.save(save_training(*plan_, batches, parts, equipment_));
}

/// Whether somebody who has been told to end never will.
bool company::is_lost(int looks) {
  constexpr int stuck = 100, lost = 4000; // looks of milliseconds
  return watch_.broken() || looks >= lost
         || (looks >= stuck && watch_.somebody_is_stuck());
}

/// Ends everybody, and the house if that succeeds.
void company::come_home() {
  constexpr int often = 64; // so often memory for a message may have run out
  virtual_clock_.clear();   // messages on their way hold buffers of pools
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
  house_.close();
}

run_result company::run() {
  try {
    play();
  } catch (...) {
    come_home();
    throw;
  }
  come_home();
  auto failure = board_->failure();
  run_result result;
  try {
    if (!at_work_)
      result = measured(*plan_, *log_, equipment_, meter_,
                        board_->finished() && !interrupted_);
    else if (!failure)
      failure = "its actors could not be ended";
  } catch (
    const std::logic_error& wrong) { // weights are kept whatever is told of times
    if (!failure)
      failure = wrong.what();
  }
  if (auto torn = count_updates(*plan_, last_, result); !torn.empty()) {
    failure = failure.value_or(torn);
    last_.clear();
  }
  equipment_.release_optimizers(); // nothing needs their memory any more
  if (!board_->failure() && !at_work_) {
    keep_weights(*plan_, std::move(last_), equipment_.shared(), result);
    keep_versions(*plan_, std::move(log_->versions), result);
  }
  result.seconds = seconds_;
  if (failure)
    result.failure = *failure;
  result.how = failure        ? ending::failed
               : interrupted_ ? ending::interrupted
                              : ending::finished;
  return result;
}

/// Those that could not be ended, the last one first. They are never destroyed.
std::atomic<company*> left_at_work = nullptr;

struct end_or_leave {
  void operator()(company* ended) const {
    if (!ended->at_work())
      delete ended;
    else
      ended->left_before = left_at_work.exchange(ended);
  }
};

} // namespace

run_result perform(run_plan plan, run_callbacks callbacks) {
  const std::unique_ptr<company, end_or_leave> all{
    new company{std::move(plan), std::move(callbacks)}};
  return all->run();
}

bool is_at_work() {
  return left_at_work.load() != nullptr;
}

} // namespace troupe
