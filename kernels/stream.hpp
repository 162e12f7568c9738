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
struct product_choices;
} // namespace cuda

/// Runs the kernels of a rank, one after another in the order of the calls. On the CPU
/// a kernel runs on the caller's thread with the help of a team, and has ended when the
/// call returns. On a GPU the call only launches the kernel; wait() or on_complete()
/// reports the kernel's end. A few kernels wait, and say so. Only values that a call
/// returns are ready immediately. For one thread at a time; ranks must not share a
/// stream.
///
/// Every kernel of a layer has a stream parameter. The following holds for all kernels,
/// for every type of element and every device:
///
/// Matrices are row-major, `stride` values from row to row; sizes count values. Outputs
/// overlap no other input or output, unless the kernel says so. The stream's device
/// must be able to access the arrays. Until a kernel has ended, callers must not change
/// or free its arrays: arrays must outlive the kernel.
///
/// Bits depend on inputs and sizes alone, not on the number of threads or on other
/// work. On a GPU bits may also depend on strides and on the alignment of rows. Bits
/// may differ between devices and instruction sets. Infinities and NaNs propagate,
/// unless the kernel says otherwise. Sizes and indices that do not fit are a broken
/// invariant of the caller.
class stream {
public:
  /// \param threads number of CPU threads, the caller's thread included
  /// \param products precision to which operands of products of floats are rounded
  /// \param gpu the GPU's stream for kernels of floats; null if the CPU runs all
  /// kernels
  /// \throws no_thread
  explicit stream(int threads = 1, precision products = precision::fp32,
                  std::shared_ptr<cuda::stream> gpu = {})
    : cpu_(threads), products_(products), gpu_(std::move(gpu)) {
    // nop
  }

  /// Number of CPU threads: the scratch of some kernels grows with this number.
  int threads() const { return cpu_.size(); }

  precision products() const { return products_; }

  /// The threads of a kernel's CPU implementation; valid while the stream lives.
  team& cpu() { return cpu_; }

  /// The GPU's stream; null if the CPU runs all kernels.
  cuda::stream* gpu() const { return gpu_.get(); }

  /// The space for arrays that kernels of the stream and this machine's CPU access.
  memory_space& memory() const;

  /// Sets the name, for reports, of the work whose kernels are launched next; an empty
  /// text ends the name. No effect on the CPU.
  void name_launches(const std::string& name) const;

  /// Starts to record the launches of this thread on a GPU, until stop_capture(). No
  /// effect on the CPU. Recorded kernels are launched together by launch_captured(),
  /// and before a wait, a callback or an event (cuda/stream.hpp).
  void capture_launches() const;

  /// Launches the recorded kernels. No effect unless this thread records launches.
  /// \throws std::runtime_error if a launch fails
  void launch_captured() const;

  /// Ends the recording, and drops recorded kernels that were not launched.
  void stop_capture() const noexcept;

  /// Measures a GPU's algorithms for each new product from now on, and stores the
  /// choices (cuda/product_choices.hpp). No effect on the CPU.
  /// \param to receives the choices, until this stream's end; not null
  void measure_choices(std::shared_ptr<cuda::product_choices> to) const;

  /// Waits until all kernels have ended, and all callbacks of on_complete() have
  /// returned.
  /// \throws std::runtime_error if a kernel of a GPU failed
  void wait() const;

  /// Calls `callback` when all kernels so far have ended, with the failure or null. On
  /// the CPU the call is immediate. On a GPU a thread of the stream calls later, one
  /// callback after another.
  /// \param callback may only store a value, or send a message
  /// \throws std::runtime_error if the GPU does not accept the request
  void on_complete(std::function<void(std::exception_ptr failure)> callback) const;

  /// A timestamp on a GPU's clock: the time at which all kernels so far have ended.
  /// Null on the CPU.
  /// \throws std::runtime_error if the GPU does not accept the request
  std::shared_ptr<void> gpu_timestamp() const;

  /// An event after all kernels so far, for streams of this process to wait for. Null
  /// on the CPU.
  /// \throws std::runtime_error if the GPU does not accept the request
  std::shared_ptr<void> event() const;

  /// Launches recorded kernels. Then makes later kernels of this stream start only
  /// after the event of another stream. No thread waits.
  /// \pre the stream has a GPU
  /// \throws std::logic_error if the stream has no GPU
  /// \throws std::runtime_error if the GPU does not accept the request
  void wait_for(const std::shared_ptr<void>& event) const;

private:
  team cpu_;
  precision products_;
  std::shared_ptr<cuda::stream> gpu_;
};

/// Seconds between two timestamps of one stream; the stream may have been destroyed.
/// \pre both timestamps are of a GPU, and a wait for the stream followed the later
/// timestamp
double seconds_between(const std::shared_ptr<void>& earlier,
                       const std::shared_ptr<void>& later);

} // namespace troupe
