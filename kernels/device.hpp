// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/launched_end.hpp"
#include "kernels/occupation.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

class stream;

/// A piece of a work that others wait for.
struct work_part {
  double share;               ///< Of the work's cost.
  std::function<void()> run;  ///< Empty: no arithmetic.
  std::function<void()> over; ///< Told when it has ended, if there is one; may only
                              ///< send a message.
};

/// Of works that start in the order in which they are enqueued.
inline constexpr std::int64_t no_turn = -1;

/// Told of a work that a GPU may still be at, when all of it has been launched; may
/// only send a message, or let go of a buffer.
using on_launched = std::function<void(std::shared_ptr<launched_end>)>;

/// By what a device knows the cost of a work.
struct work_key {
  int kind;
  int stage;
  double size = 1; ///< As work::size.
};

/// An action's arithmetic, or some of it, and what the whole action costs where time is
/// only counted.
struct work {
  int kind = 0;          ///< Of the costs a device knows; the caller's op.
  int stage = 0;         ///< Costs may differ by stage.
  int microbatch = -1;   ///< For whoever watches; -1: of none.
  int direction = 0;     ///< Of the schedule; for whoever watches.
  double operations = 0; ///< Floating-point operations.
  double size = 1;       ///< What it costs of an action of its kind: 1 is all.
  std::vector<work_key> also = {};   ///< Others, whose costs are added to this one's.
  std::function<void()> run;         ///< Empty: no arithmetic.
  std::vector<work_part> parts = {}; ///< In place of `run`: one after another.
  double begun = 0; ///< The share of the action that works before this one were.
  /// Works with turns start in the order of these: 0, 1 and so on of each device.
  std::int64_t turn = no_turn;
  /// What its kernels read: works that GPUs may still be at. Only for a GPU.
  std::vector<std::shared_ptr<launched_end>> inputs = {};
  on_launched launched = {}; ///< If a GPU computes it, before its end; may be empty.

  /// Whether there is arithmetic.
  bool computes() const;

  /// Does it all, here and now. \pre it has no inputs that a GPU may be at
  void compute() const;

  /// Launches it all on the GPU of a stream, which tells `over` of parts. \param
  /// failure of one of those, set before the work is over \throws what could not be
  /// launched, while what was may still run
  void launch(const stream& on, std::exception_ptr& failure) const;

  /// The share of the action that has been done with this work.
  double done() const {
    double result = parts.empty() ? 1 : begun;
    for (const auto& part : parts)
      result += part.share;
    return result;
  }
};

/// How reports call a work.
using work_name = std::function<std::string(const work&)>;

/// Runs arithmetic, and waits for what it has launched.
void run_to_end(const std::function<void()>& arithmetic, const stream* on);

/// How a work has ended.
struct work_end {
  nanoseconds start = 0;
  nanoseconds end = 0;
  std::exception_ptr failure = nullptr; ///< What its arithmetic threw, if it did.
};

/// What a work has failed of, or what is asked behind it. Null: of nothing.
/// \param check throws what is wrong; may be empty
inline std::exception_ptr failure_of(const work_end& end,
                                     const std::function<void()>& check) {
  if (!end.failure && check)
    try {
      check();
    } catch (...) {
      return std::current_exception();
    }
  return end.failure;
}

/// Where a rank computes. One work after another, in the order in which they were
/// enqueued, or of their turns (job_line.hpp).
class device {
public:
  /// Told once of each work when it began and ended. A CPU's and CUDA's devices call it
  /// on a thread of their own, virtual time between actors: it may only send a message.
  using on_end = std::function<void(const work_end&)>;

  virtual ~device() = default;

  virtual void enqueue(work what, on_end ended) = 0;

  /// Forgets work that has not begun, and takes no more.
  virtual void stop() = 0;

  /// Whether no arithmetic is under way, or waits to be.
  virtual bool idle() const = 0;

  /// Whether arithmetic is under way just now.
  virtual bool computes() const { return !idle(); }

  /// How many actions a scheduler may have granted and not yet seen done. A device that
  /// takes more than one heeds the turns of works.
  virtual int depth() const { return 1; }
};

} // namespace troupe
