#pragma once

#include "kernels/bf16.hpp"
#include "kernels/team.hpp"

#include <memory>
#include <utility>

namespace troupe {

namespace cuda {
class line;
}

/// Where the kernels of a rank run, one after another in the order of their calls. On
/// the CPU a kernel runs on its caller's thread with the help of a team, and has ended
/// when the call returns. On a GPU it has been launched, and has ended behind the
/// line's wait(); only what a call returns is there at once. For one thread at a time;
/// ranks do not share one.
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
                  std::shared_ptr<cuda::line> gpu = {})
    : cpu_(threads), products_(products), gpu_(std::move(gpu)) {
    // nop
  }

  /// Threads of the CPU: the scratch of some kernels grows with them.
  int threads() const { return cpu_.size(); }

  precision products() const { return products_; }

  /// The threads that a kernel's CPU implementation shares its work out to.
  team& cpu() { return cpu_; }

  /// Null where kernels run on the CPU.
  cuda::line* gpu() const { return gpu_.get(); }

  /// Until all kernels have ended. \throws std::runtime_error if one of a GPU failed
  void wait() const;

private:
  team cpu_;
  precision products_;
  std::shared_ptr<cuda::line> gpu_;
};

} // namespace troupe
