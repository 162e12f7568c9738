#pragma once

#include <caf/policy/unprofiled.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/coordinator.hpp>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

namespace troupe {

/// How the threads of real time share their actors: one queue for all, like CAF's work
/// sharing, but a thread keeps the actor that it woke last for itself. What follows
/// from a message on the same rank then needs neither lock nor another thread, and only
/// what another rank is to do wakes one: of two actors woken, the first goes to the
/// queue.
class warm_sharing : public caf::policy::unprofiled {
public:
  struct coordinator_data {
    explicit coordinator_data(caf::scheduler::abstract_coordinator*) {
      // nop
    }

    void push(caf::resumable* job) {
      bool wake = false;
      {
        const std::lock_guard guard{lock};
        queue.push_back(job);
        wake = sleepers > 0;
      }
      if (wake)
        news.notify_one();
    }

    std::mutex lock;
    std::condition_variable news;
    std::deque<caf::resumable*> queue;
    int sleepers = 0;
  };

  struct worker_data {
    explicit worker_data(caf::scheduler::abstract_coordinator*) {
      // nop
    }

    caf::resumable* kept = nullptr;
    int in_a_row = 0; // of kept ones
  };

  /// Gives the actor that this thread has kept to the others: for a thread that is
  /// about to compute for long.
  static void hand_over() {
    if (here.kept != nullptr && *here.kept != nullptr)
      here.shared->push(std::exchange(*here.kept, nullptr));
  }

  template <class Coordinator>
  void central_enqueue(Coordinator* self, caf::resumable* job) {
    d(self).push(job);
  }

  template <class Worker>
  void external_enqueue(Worker* self, caf::resumable* job) {
    d(self->parent()).push(job);
  }

  template <class Worker>
  void internal_enqueue(Worker* self, caf::resumable* job) {
    if (auto* const before = std::exchange(d(self).kept, job))
      d(self->parent()).push(before);
  }

  template <class Worker>
  void resume_job_later(Worker* self, caf::resumable* job) {
    d(self->parent()).push(job);
  }

  template <class Worker>
  caf::resumable* dequeue(Worker* self) {
    auto& mine = d(self);
    auto& shared = d(self->parent());
    here = {&shared, &mine.kept};
    if (mine.kept != nullptr && mine.in_a_row < most_in_a_row) {
      ++mine.in_a_row;
      return std::exchange(mine.kept, nullptr);
    }
    mine.in_a_row = 0;
    hand_over();
    std::unique_lock guard{shared.lock};
    ++shared.sleepers;
    shared.news.wait(guard, [&] { return !shared.queue.empty(); });
    --shared.sleepers;
    auto* const job = shared.queue.front();
    shared.queue.pop_front();
    return job;
  }

  template <class Worker, class Function>
  void foreach_resumable(Worker* self, Function f) {
    if (auto* const job = std::exchange(d(self).kept, nullptr))
      f(job);
  }

  template <class Coordinator, class Function>
  void foreach_central_resumable(Coordinator* self, Function f) {
    for (auto* const job : std::exchange(d(self).queue, {}))
      f(job);
  }

private:
  static constexpr int most_in_a_row = 64; // then those in the queue have their turn

  struct place {
    coordinator_data* shared;
    caf::resumable** kept;
  };

  static inline thread_local place here{nullptr, nullptr};
};

using warm_pool = caf::scheduler::coordinator<warm_sharing>;

} // namespace troupe
