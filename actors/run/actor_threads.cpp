// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/actor_threads.hpp"

#include "kernels/threads.hpp"

#include <caf/actor_config.hpp>
#include <caf/actor_system.hpp>
#include <caf/execution_unit.hpp>
#include <caf/group.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/make_actor.hpp>
#include <caf/message.hpp>
#include <caf/message_handler.hpp>
#include <caf/monitorable_actor.hpp>
#include <caf/resumable.hpp>
#include <caf/scoped_execution_unit.hpp>

#include <exception>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace troupe {

namespace {

/// A clock on which no timeout can be set.
class idle_clock : public caf::actor_clock {
public:
  void set_ordinary_timeout(time_point, caf::abstract_actor*, caf::atom_value,
                            std::uint64_t) override {
    refuse();
  }
  void set_multi_timeout(time_point, caf::abstract_actor*, caf::atom_value,
                         std::uint64_t) override {
    refuse();
  }
  void set_request_timeout(time_point, caf::abstract_actor*, caf::message_id) override {
    refuse();
  }
  void schedule_message(time_point, caf::strong_actor_ptr,
                        caf::mailbox_element_ptr) override {
    refuse();
  }
  void schedule_message(time_point, caf::group, caf::strong_actor_ptr,
                        caf::message) override {
    refuse();
  }
  void cancel_ordinary_timeout(caf::abstract_actor*, caf::atom_value) override {}
  void cancel_request_timeout(caf::abstract_actor*, caf::message_id) override {}
  void cancel_timeouts(caf::abstract_actor*) override {}
  void cancel_all() override {}

private:
  [[noreturn]] static void refuse() {
    throw std::logic_error(
      "actors in the run's default actor system cannot set timeouts or send delayed "
      "messages: set training_job::system to an actor system of yours");
  }
};

/// Receives from CAF the text that users' actors print, and the news that a handler of
/// such an actor has thrown.
class plain_printer : public caf::monitorable_actor {
public:
  explicit plain_printer(caf::actor_config& config) : monitorable_actor(config) {
    print_.assign(
      [](caf::add_atom, caf::actor_id, const std::string& text) { std::cerr << text; });
  }

  void enqueue(caf::mailbox_element_ptr element, caf::execution_unit*) override {
    print_(element->content());
  }

private:
  caf::message_handler print_;
};

} // namespace

/// One thread, and the actor that the thread keeps.
class actor_threads::worker : public caf::execution_unit {
public:
  worker(actor_threads& pool, std::function<void()> broken)
    : execution_unit(&pool.system()), pool_(pool), broken_(std::move(broken)) {
    // nop
  }

  void start(int count) {
    thread_ = start_thread(count, [this] { run(); });
  }
  void join() { thread_.join(); }

  void exec_later(caf::resumable* job) override {
    if (auto* const previous = std::exchange(kept_, job))
      pool_.add(previous);
  }

  /// Calls `report` and runs the actors that this worker has kept, on the caller's
  /// thread.
  void visit(const std::function<void()>& report,
             const compute_threads::thread_control& works) {
    current_worker = this;
    visits_ = &works;
    try {
      report();
      for (int i = 0; kept_ != nullptr && i < most_in_a_row; ++i) {
        if (i >= least_in_a_row && works.wanted())
          break;
        resume(std::exchange(kept_, nullptr));
      }
    } catch (const std::exception&) {
      leave();
      throw;
    }
    leave();
  }

  bool visits() const { return visits_ != nullptr; }

  /// The thread will compute or read for long.
  void stay_away() {
    hand_over();
    if (visits())
      visits_->on_leave();
  }

  void hand_over() {
    if (kept_ != nullptr)
      pool_.add(std::exchange(kept_, nullptr));
  }

private:
  static constexpr int most_in_a_row = 64; // then those in the queue have their turn
  static constexpr int least_in_a_row = 4; // from the end of a work to the next grant

  void leave() {
    visits_ = nullptr;
    hand_over();
    current_worker = nullptr;
  }

  /// Null when the pool stops.
  caf::resumable* next() {
    if (kept_ != nullptr && in_a_row_ < most_in_a_row) {
      ++in_a_row_;
      return std::exchange(kept_, nullptr);
    }
    in_a_row_ = 0;
    hand_over();
    std::unique_lock guard{pool_.lock_};
    ++pool_.sleepers_;
    pool_.news_.wait(guard, [&] { return !pool_.queue_.empty() || pool_.stopping_; });
    --pool_.sleepers_;
    if (pool_.queue_.empty())
      return nullptr;
    auto* const job = pool_.queue_.front();
    pool_.queue_.pop_front();
    return job;
  }

  void resume(caf::resumable* job) {
    if (job->resume(this, pool_.max_throughput()) == caf::resumable::resume_later)
      pool_.add(job);
    else
      caf::intrusive_ptr_release(job);
  }

  void run() {
    current_worker = this;
    while (auto* const job = next())
      try {
        resume(job);
      } catch (const std::exception&) { // exceptions of handlers do not come as far
        broken_();
      }
  }

  actor_threads& pool_;
  std::function<void()> broken_;
  caf::resumable* kept_ = nullptr;
  int in_a_row_ = 0; // of kept actors
  const compute_threads::thread_control* visits_ = nullptr;
  std::thread thread_;
};

thread_local actor_threads::worker* actor_threads::current_worker = nullptr;

actor_threads::actor_threads(caf::actor_system& system)
  : abstract_coordinator(system), clock_(std::make_unique<idle_clock>()) {
  // nop
}

actor_threads::~actor_threads() = default;

caf::actor_system::module* actor_threads::make(caf::actor_system& system,
                                               caf::detail::type_list<>) {
  return new actor_threads(system);
}

actor_threads& actor_threads::threads_of(caf::actor_system& system) {
  return dynamic_cast<actor_threads&>(system.scheduler());
}

void actor_threads::start_threads(int count, const std::function<void()>& broken) {
  for (int i = 0; i < count; ++i) {
    auto next = std::make_unique<worker>(*this, broken);
    workers_.reserve(workers_.size() + 1);
    next->start(count);
    has_threads_ = true;
    workers_.push_back(std::move(next));
  }
}

void actor_threads::settle() {
  if (has_threads_)
    return;
  caf::scoped_execution_unit here_alone{&system()};
  while (!queue_.empty()) {
    auto* const job = queue_.front();
    queue_.pop_front();
    if (job->resume(&here_alone, max_throughput()) == caf::resumable::resume_later)
      enqueue(job);
    else
      caf::intrusive_ptr_release(job);
  }
}

void actor_threads::visit(const std::function<void()>& report,
                          const compute_threads::thread_control& works) {
  worker{*this, {}}.visit(report, works);
}

void actor_threads::hand_over() {
  if (current_worker != nullptr)
    current_worker->stay_away();
}

void actor_threads::enqueue(caf::resumable* job) {
  if (current_worker != nullptr
      && current_worker->visits()) // outside the pool no actor speaks
    return current_worker->exec_later(job);
  add(job);
}

/// Puts an actor into the queue of all threads.
void actor_threads::add(caf::resumable* job) {
  bool wake = false;
  {
    const std::lock_guard guard{lock_};
    queue_.push_back(job);
    wake = sleepers_ > 0;
  }
  if (wake)
    news_.notify_one();
}

// CAF's own printer would be a thread.
void actor_threads::start() {
  caf::scoped_execution_unit here_alone{&system()};
  caf::actor_config config{&here_alone};
  utility_actors_[printer_id] = caf::make_actor<plain_printer, caf::actor>(
    system().next_actor_id(), system().node(), &system(), config);
}

// Threads end when no actor is left to run; without any thread, the remaining actors
// are dropped.
void actor_threads::stop() {
  {
    const std::lock_guard guard{lock_};
    stopping_ = true;
  }
  news_.notify_all();
  for (auto& w : workers_)
    w->join();
  while (!queue_.empty()) {
    auto* const job = queue_.front();
    queue_.pop_front();
    cleanup_and_release(job);
  }
}

} // namespace troupe
