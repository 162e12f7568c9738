#include "actors/run/company.hpp"

#include "actors/run/actor_house.hpp"
#include "actors/run/equipment.hpp"
#include "actors/run/notice_board.hpp"
#include "actors/run/recorder.hpp"
#include "actors/run/roster.hpp"
#include "actors/run/run_watch.hpp"
#include "actors/run/stall.hpp"
#include "actors/run/whole_weights.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <thread>

namespace troupe {

namespace {

using namespace std::chrono_literals;

/// A run in the making.
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
  int stages() const { return plan_->dims.stages; }
  props shared() {
    return {plan_, &meter_, real() ? nullptr : &virtual_clock_,
            real() ? nullptr : &interconnect_};
  }

  void play();
  void help();
  void wait_in_real_time();
  void wait_in_virtual_time();
  void wait_for_news();
  void serve_snapshots();
  void evaluate(const notice_board::snapshot& parts);
  bool rest();
  void stop_if_interrupted();
  std::vector<mail::collected> collect();
  void come_home();
  bool is_lost(int looks);
  void report_now_and_then();
  run_result result_so_far();

  std::shared_ptr<const run_plan> plan_;
  run_callbacks callbacks_;
  mail_meter meter_;
  wall_clock wall_clock_;
  virtual_clock virtual_clock_;
  interconnect interconnect_;
  run_watch watch_{*plan_, wall_clock_};
  equipment equipment_{*plan_, virtual_clock_, watch_};
  int evaluated_ = 0;
  bool stopping_ = false;
  bool at_work_ = false;
  double seconds_ = 0;
  std::vector<mail::collected> last_; // what stages have in the end
  std::chrono::steady_clock::time_point last_report_ = std::chrono::steady_clock::now();

  // These may hold buffers, so they go before the pools do.
  std::shared_ptr<run_log> log_;
  std::shared_ptr<notice_board> board_;
  actor_house house_{plan_->clock};
  roster roster_{shared(), equipment_, log_, board_};
};

void company::report_now_and_then() {
  const auto now = std::chrono::steady_clock::now();
  if (callbacks_.report && now - last_report_ >= 100ms) {
    last_report_ = now;
    callbacks_.report(board_->latest());
  }
}

void company::evaluate(const notice_board::snapshot& parts) {
  const whole_weights all{*plan_, parts};
  callbacks_.evaluate(parts.front().batches, all.buckets());
  ++evaluated_;
}

void company::wait_for_news() {
  const run_watch::waiting counted{watch_};
  board_->wait(20ms);
  if (house_.broken())
    board_->post_failure("out of memory");
}

/// Makes all schedulers grant nothing more, and waits until nothing runs; false if the
/// run failed meanwhile.
bool company::rest() {
  post(meter_, roster_.coordinator(), mail::hold{});
  for (;;) {
    house_.settle();
    if (board_->failure())
      return false;
    if (board_->take_held())
      return true;
    if (real())
      wait_for_news();
    else
      virtual_clock_.step();
  }
}

/// Makes a run that is interrupted end as if it were to end at an update that is near:
/// all stages go on until they have made it.
void company::stop_if_interrupted() {
  const bool interrupted =
    callbacks_.interrupted != nullptr && callbacks_.interrupted->load();
  if (interrupted && !std::exchange(stopping_, true))
    post(meter_, roster_.coordinator(), mail::stop{});
}

// The clock of virtual time stands still by itself.
void company::serve_snapshots() {
  auto parts = board_->take_snapshot();
  if (!parts)
    return;
  if (stopping_) { // nobody asks for it any more, but ranks wait for copies
    for (; parts; parts = board_->take_snapshot())
      ++evaluated_;
    post(meter_, roster_.coordinator(), mail::proceed{evaluated_});
  } else if (!real() || rest()) {
    wall_clock_.pause();
    for (; parts; parts = board_->take_snapshot())
      evaluate(*parts);
    wall_clock_.resume();
    post(meter_, roster_.coordinator(), mail::proceed{evaluated_});
  }
}

void company::wait_in_real_time() {
  while (!board_->finished() && !board_->failure()) {
    stop_if_interrupted();
    wait_for_news();
    serve_snapshots();
    report_now_and_then();
  }
}

void company::wait_in_virtual_time() {
  for (;;) {
    stop_if_interrupted();
    house_.settle();
    if (board_->take_news()) {
      if (board_->failure())
        return;
      serve_snapshots();
    }
    report_now_and_then();
    if (board_->finished())
      return;
    if (virtual_clock_.step())
      continue;
    post(meter_, roster_.coordinator(), mail::explain{});
    house_.settle();
    board_->post_failure("the run has stalled: nothing runs and no event is pending; "
                         + describe_stall(board_->explanations()));
    return;
  }
}

/// What the stages have in the end; nothing if the run fails meanwhile.
std::vector<mail::collected> company::collect() {
  post(meter_, roster_.coordinator(), mail::collect{});
  house_.settle();
  auto all = board_->take_collected();
  while (!all && !board_->failure()) {
    if (!real()) {
      board_->post_failure("the run has ended, and not all stages give their weights");
      break;
    }
    wait_for_news();
    all = board_->take_collected();
  }
  return all.value_or(std::vector<mail::collected>{});
}

/// Whether somebody who has been told to end never will.
bool company::is_lost(int looks) {
  constexpr int stuck = 100, lost = 4000; // looks of milliseconds
  return house_.broken() || looks >= lost
         || (looks >= stuck && watch_.somebody_is_stuck());
}

/// Ends everybody, and the house if that succeeds.
void company::come_home() {
  constexpr int often = 64; // so often memory for a message may have run out
  watch_.end();
  virtual_clock_.clear(); // messages on their way hold buffers of pools
  interconnect_.clear();
  const run_watch::waiting counted{watch_};
  for (int looks = 0; house_.actors() > 0 && !at_work_; ++looks) {
    try {
      if (looks % often == 0)
        roster_.dismiss();
      house_.settle();
    } catch (const std::bad_alloc&) { // NOLINT(bugprone-empty-catch)
    }
    at_work_ = is_lost(looks);
    if (house_.actors() > 0)
      std::this_thread::sleep_for(std::min(looks * 50us, 5000us));
  }
  if (at_work_)
    return;
  roster_.clear();
  house_.close();
}

run_result company::result_so_far() {
  run_result result;
  result.sums = measures_of(log_->sums, stages());
  if (const auto modelled = log_->modelled(board_->finished() && !stopping_)) {
    result.sums.makespan = modelled->makespan;
    result.sums.busy = modelled->busy;
    result.sums.span_idle = modelled->span_idle;
  }
  result.loads = std::move(log_->loads);
  result.actions = std::move(log_->actions);
  result.actions_cut = log_->cut;
  result.loss = log_->losses.losses();
  result.loss_samples = log_->losses.samples();
  result.loss_every = log_->losses.every();
  result.samples = result.loss_samples.empty() ? 0 : result.loss_samples.back();
  if (!plan_->updates_are_by(update_by::all)) {
    result.exchange = measures_of(equipment_.shared(), stages());
    if (plan_->keep_record)
      result.accesses = history_of(equipment_.shared());
  }
  for (const auto& rank : equipment_.ranks()) {
    if (plan_->work) {
      result.peak_bytes.push_back(rank->memory.all().peak());
      auto& parts = result.peak_parts.emplace_back();
      for (int use = 0; use < memory_uses; ++use)
        parts[static_cast<std::size_t>(use)] =
          rank->memory.of(static_cast<memory_use>(use)).peak();
      result.reserved_bytes.push_back(rank->memory.all().reserved());
    }
  }
  result.late_allocations = equipment_.late_allocations();
  result.envelopes = meter_.total();
  result.most_envelopes = meter_.most_at_once();
  for (int kind = 0; kind < traffic_kinds; ++kind)
    result.bytes_moved[static_cast<std::size_t>(kind)] =
      meter_.bytes(static_cast<traffic>(kind));
  return result;
}

/// Another thread, for answers: all others may be at work that never ends.
void company::help() {
  try {
    house_.start_threads(1);
  } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
  }
}

/// From the first message to the last.
void company::play() {
  wall_clock_.restart();
  roster_.spawn(house_.system());
  roster_.wire();
  if (real()) {
    house_.start_threads(std::clamp(plan_->threads, 1, plan_->devices()));
    watch_.begin(
      *board_, [this] { post(meter_, roster_.coordinator(), mail::explain{}); },
      [this] { help(); });
    wait_in_real_time();
  } else {
    wait_in_virtual_time();
  }
  seconds_ = static_cast<double>(wall_clock_.now()) * 1e-9;
  if (board_->finished())
    serve_snapshots();
  if (plan_->keep_weights && !board_->failure())
    last_ = collect();
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
      result = result_so_far();
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
  result.how = failure     ? ending::failed
               : stopping_ ? ending::interrupted
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
