#pragma once

#include "kernels/occupation.hpp"
#include "kernels/team.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace troupe {

/// A piece of a work that others wait for.
struct work_part {
  double share;               ///< Of the work's cost.
  std::function<void()> run;  ///< Empty: no arithmetic.
  std::function<void()> over; ///< Told when it has ended, if there is one; may only
                              ///< send a message.
};

/// An action's arithmetic, or some of it, and what the whole action costs where time is
/// only counted.
struct work {
  int kind = 0;                      ///< Of the costs a device knows; the caller's op.
  int stage = 0;                     ///< Costs may differ by stage.
  int microbatch = -1;               ///< For whoever watches; -1: of none.
  double operations = 0;             ///< Floating-point operations.
  std::function<void()> run;         ///< Empty: no arithmetic.
  std::vector<work_part> parts = {}; ///< In place of `run`: one after another.
  double begun = 0; ///< The share of the action that works before this one were.

  /// The share of the action that has been done with this work.
  double done() const {
    double result = parts.empty() ? 1 : begun;
    for (const auto& part : parts)
      result += part.share;
    return result;
  }
};

/// Where a rank computes. Work runs in the order in which it was enqueued.
class device {
public:
  /// Told when an action began and ended. CUDA calls it on a thread of its own and
  /// virtual time between actors, so it may only send a message.
  using on_end = std::function<void(nanoseconds start, nanoseconds end)>;

  virtual ~device() = default;

  virtual void enqueue(work what, on_end ended) = 0;

  /// How many actions a scheduler may have granted and not yet seen done.
  virtual int depth() const { return 1; }
};

/// Runs work at once, on the caller's thread and with the help of its team.
class cpu_device : public device {
public:
  /// \param before_work called on the thread that is about to compute for long
  explicit cpu_device(occupation& seen, std::function<void()> before_work = {})
    : seen_(seen), before_work_(std::move(before_work)) {
    // nop
  }

  void enqueue(work what, on_end ended) override;

private:
  occupation& seen_;
  std::function<void()> before_work_;
};

} // namespace troupe
