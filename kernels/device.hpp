// SPDX-License-Identifier: BSD-3-Clause
// The interface of a device: works, their costs and ends, and the queue that runs them.
#pragma once

#include "kernels/gpu_completion.hpp"
#include "kernels/occupation.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe {

class stream;

/// A part of a work. Other actors may wait for the end of the part.
struct work_part {
  double share;              ///< Share of the action's cost.
  std::function<void()> run; ///< Empty if the part has no arithmetic.
  std::function<void()>
    on_done; ///< Called when the part has ended without a failure of the work so far;
             ///< may only send a message; may be empty.
};

/// The turn of works that start in the order of enqueueing.
inline constexpr std::int64_t no_turn = -1;

/// Called with the completion of a work that may still run on a GPU, after the whole
/// work has been launched. May only send a message, or release a buffer.
using on_launched = std::function<void(std::shared_ptr<gpu_completion>)>;

/// The key by which a device knows the cost of a work.
struct work_key {
  int kind;
  int stage;
  double size = 1; ///< Cost relative to the whole action: 1 is the whole action.
};

/// The arithmetic of an action, or a part of it, and the cost of the whole action for
/// devices that only count time.
struct work {
  /// Kind of the work, for costs and the watchdog: an `op` (schedules/action.hpp) as
  /// int, or `op_count` for work that is no action.
  int kind = 0;
  int stage = 0;         ///< Costs may differ by stage.
  int microbatch = -1;   ///< Index for the watchdog and reports; -1: none.
  int direction = 0;     ///< Direction of the schedule; for the watchdog and reports.
  double operations = 0; ///< Floating-point operations.
  double size =
    1; ///< Cost relative to the whole action of this kind: 1 is the whole action.
  std::vector<work_key> also =
    {}; ///< Further works, whose costs are added to the cost of this work.
  std::function<void()> run; ///< Empty if the work has no arithmetic, or has `parts`.
  /// Parts that run one after another, in place of `run`.
  std::vector<work_part> parts = {};
  double start_share = 0; ///< The share of the action that earlier works have computed.
  /// The works of a device that have turns start in the order 0, 1 and so on. A device
  /// with a depth of 1 ignores turns.
  std::int64_t turn = no_turn;
  /// Earlier works, which GPUs may still run, whose results the kernels of this work
  /// read. Empty unless a GPU computes this work.
  std::vector<std::shared_ptr<gpu_completion>> inputs = {};
  on_launched launched = {}; ///< If a GPU computes the work: called after the launch,
                             ///< before the end is reported; may be empty. Not called
                             ///< if the launch fails.

  /// True if there is arithmetic.
  bool computes() const;

  /// Computes the whole work on this thread.
  /// \pre no work in `inputs`
  /// \throws std::logic_error if `inputs` is not empty
  /// \throws the exceptions of the arithmetic
  void compute() const;

  /// Launches the whole work on the GPU of a stream. A thread of the stream calls
  /// `on_done` of the parts.
  /// \param failure the exception of an `on_done` call, set before the work has ended;
  /// must outlive the work
  /// \throws the error of a launch; kernels that were launched before may still run
  void launch(const stream& stream, std::exception_ptr& failure) const;

  /// The share of the action that is computed when this work has ended.
  double done() const {
    double result = parts.empty() ? 1 : start_share;
    for (const auto& part : parts)
      result += part.share;
    return result;
  }
};

/// Returns the name of a work in reports.
using work_name = std::function<std::string(const work&)>;

/// Runs arithmetic, and waits for the kernels that the arithmetic has launched on
/// `stream`. Rethrows an exception of the arithmetic after that wait.
/// \param arithmetic may be empty: the call then does nothing
/// \param stream null if there is nothing to wait for
/// \throws the exception of the arithmetic; else std::runtime_error if a kernel failed
void run_to_end(const std::function<void()>& arithmetic, const stream* stream);

/// The outcome of a work: times on the run's clock, and the failure. Both times are 0
/// if memory was too short to launch the work on a GPU.
struct work_end {
  nanoseconds start = 0;
  nanoseconds end = 0;
  std::exception_ptr failure =
    nullptr; ///< The exception of the arithmetic, of a launch, of a kernel or of an
             ///< `on_done` call; null without one.
  /// Part of the time from start to end in which the work's thread had no processor:
  /// other programs ran, or the work slept. 0 in virtual time and on a GPU.
  nanoseconds off_processor_time = 0;
};

/// The exception of a work, or else of the check after the work; null if both succeed.
/// \param check throws if the result is wrong; may be empty
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

/// The place where a rank computes: runs one work after another, in the order of
/// enqueueing, or of the works' turns (job_line.hpp).
class device {
public:
  /// Called once for each work that stop() or the destructor does not drop. The thread
  /// is a compute thread, a thread of the stream, or the caller of enqueue(). In
  /// virtual time the call comes between actors. May only send a message.
  using on_end = std::function<void(const work_end&)>;

  virtual ~device() = default;

  /// Adds a work to the queue. May compute the work, and call `ended`, before
  /// returning. After stop() works are dropped.
  virtual void enqueue(work item, on_end ended) = 0;

  /// Drops works that have neither started nor been launched, and accepts no more.
  virtual void stop() = 0;

  /// True if no arithmetic runs or is enqueued.
  virtual bool idle() const = 0;

  /// True if arithmetic runs now. The default, !idle(), also counts enqueued works.
  virtual bool computes() const { return !idle(); }

  /// Number of actions that a scheduler may have granted to the device before the first
  /// one is done. A device with a depth above 1 respects the turns of works.
  virtual int depth() const { return 1; }
};

} // namespace troupe
