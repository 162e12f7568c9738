// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/bf16.hpp"
#include "kernels/memory_space.hpp"
#include "kernels/team.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace troupe {

namespace cuda {
class stream;
}

/// Where the kernels of a rank run, one after another in the order of their calls. On
/// the CPU a kernel runs on its caller's thread with the help of a team, and has ended
/// when the call returns. On a GPU it has been launched, and has ended when wait() or
/// when_over() says so; only what a call returns is there at once. For one thread at a
/// time; ranks do not share one.
///
/// Every kernel of a layer takes the stream that it runs on. What holds for all of
/// them, for every type of element and every device:
///
/// Matrices are row-major, `stride` values from row to row; sizes count values. What is
/// written overlaps nothing else that is read or written, unless that is said. Arrays
/// are in memory that the stream's device reads, and stay as they are until the kernel
/// has ended.
///
/// Bits depend on inputs and sizes alone: not on the threads of a stream, nor on what
/// else runs. Devices and instruction sets may differ from each other. Infinities and
/// NaNs go on. Sizes and indices that do not fit are a broken invariant of the caller.
class stream {
public:
  /// \param threads of the CPU, the caller's among them
  /// \param products what the operands of products of floats are rounded to
  /// \param gpu where kernels of floats run; null: on the CPU
  /// \throws no_thread
  explicit stream(int threads = 1, precision products = precision::fp32,
                  std::shared_ptr<cuda::stream> gpu = {})
    : cpu_(threads), products_(products), gpu_(std::move(gpu)) {
    // nop
  }

  /// Threads of the CPU: the scratch of some kernels grows with them.
  int threads() const { return cpu_.size(); }

  precision products() const { return products_; }

  /// The threads that a kernel's CPU implementation shares its work out to.
  team& cpu() { return cpu_; }

  /// Null where kernels run on the CPU.
  cuda::stream* gpu() const { return gpu_.get(); }

  /// Where arrays are that its kernels read, and this machine as well.
  memory_space& memory() const;

  /// Says whose kernels follow, to whoever reports on them; empty: nobody's.
  void name_launches(const std::string& of) const;

  /// What this thread launches on a GPU from now on is launched together, when somebody
  /// waits for it or by launch_deferred(), until stop_deferring() (cuda/stream.hpp).
  void defer_launches() const;
  void launch_deferred() const;
  void stop_deferring() const noexcept;

  /// Until all kernels have ended. \throws std::runtime_error if one of a GPU failed
  void wait() const;

  /// Calls `then` when all kernels have ended, with what failed or null: on the CPU at
  /// once, on a GPU later, on a thread of its own, one such call after another.
  /// \param then may only put something aside, or send a message
  /// \throws std::runtime_error if a GPU cannot be asked
  void when_over(std::function<void(std::exception_ptr failure)> then) const;

  /// A moment on a GPU's clock: when all kernels have ended that were launched by now.
  /// Null on the CPU. \throws std::runtime_error if a GPU cannot be asked
  std::shared_ptr<void> moment() const;

  /// A mark behind all that was launched by now, for streams of this process to wait
  /// for. Null on the CPU. \throws std::runtime_error if a GPU cannot be asked
  std::shared_ptr<void> mark() const;

  /// Kernels that are launched from now on begin when all before another stream's mark
  /// have ended; nobody here waits. \pre it has a GPU, and nothing is deferred
  /// \throws std::runtime_error likewise
  void wait_for(const std::shared_ptr<void>& mark) const;

private:
  team cpu_;
  precision products_;
  std::shared_ptr<cuda::stream> gpu_;
};

/// Seconds between two moments of one stream, which may be gone. \pre it was waited for
/// behind the later one; both are of a GPU
double seconds_between(const std::shared_ptr<void>& earlier,
                       const std::shared_ptr<void>& later);

} // namespace troupe
