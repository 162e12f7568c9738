// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/memory_space.hpp"
#include "kernels/processor_facts.hpp"
#include "kernels/stored_matrix.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

struct CUstream_st;

namespace troupe::cuda {

/// Space that kernels of a stream work in, each kind for one launch after another.
enum class workspace : std::uint8_t {
  products,     ///< What cuBLASLt works with.
  left_factor,  ///< Of a product, rounded;
  right_factor, ///< likewise.
  sums,         ///< Of a product, before they are rounded.
  rows,         ///< What a kernel says of each row, or reads of each; parts of sums.
};

/// A GPU as one rank has it: CUDA's stream, on which work is launched and not waited
/// for, cuBLASLt's products, and space for what they need. For one thread at a time.
class stream {
public:
  /// \param gpu by its number
  /// \param tf32 whether operands of fp32 products may be rounded to 11 bits
  /// \throws std::runtime_error if there is none of that number, or it cannot be used
  explicit stream(int gpu, bool tf32 = false);
  ~stream();
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  /// CUDA's; kernels can be launched on it by this thread.
  CUstream_st* on() const;

  /// Says whose launches follow, to whoever reports on them: "F3 of stage 1". Empty:
  /// nobody's; a name is followed by none on the same thread.
  void name_launches(const std::string& of);

  /// What this thread launches is written down from now on, and launched together when
  /// somebody waits for it, or by launch_deferred(): as one graph, if the very same has
  /// been launched before. Until stop_deferring().
  void defer_launches();

  /// \throws std::runtime_error if it cannot be launched
  void launch_deferred();

  /// What has been deferred and not launched is forgotten.
  void stop_deferring() noexcept;

  /// What is told of an end: why what was launched has failed, or null.
  using on_over = std::function<void(std::exception_ptr failure)>;

  /// A completion callback: calls `then` when all that has been launched has ended, on
  /// a thread of the stream's, one such call after another. \param then does not wait
  /// for the stream
  void when_over(on_over then);

  /// Until all that was launched has ended, and who waits for it has been called.
  /// \throws std::runtime_error if it failed
  void wait();

  /// A moment on the GPU's clock: when all that has been launched by now has ended.
  std::shared_ptr<void> moment();

  /// A mark behind all that has been launched by now.
  std::shared_ptr<void> mark();

  /// What is launched from now on runs when what is before another stream's mark has
  /// ended. If that fails, so does this, or it never runs.
  void wait_for(const std::shared_ptr<void>& mark);

  bool tf32() const { return tf32_; }

  /// By its number.
  int gpu() const { return gpu_; }

  /// c = a b + beta c, each as read. a and b are of one type; c is fp32, sums are too.
  /// With beta 0, c may hold anything. \param rounds operands of fp32 to 11 bits
  void product(stored_matrix<const float> a, stored_matrix<const float> b, float beta,
               matrix<float> c, bool rounds);

  /// Such a space of that many bytes at least, of the GPU alone: this machine neither
  /// reads nor writes there. Holds nothing behind wait(), nor where it has grown.
  /// \throws std::bad_alloc
  void* space(workspace which, std::int64_t bytes);

  /// A pinned place for what a kernel tells this machine, which reads it when that is
  /// over: of `result_bytes`, free again when nobody holds it. Outlived by the stream.
  /// \throws std::bad_alloc
  std::shared_ptr<void> result();

  static constexpr std::int64_t result_bytes = 64;

private:
  struct state;

  int gpu_;
  bool tf32_;
  std::unique_ptr<state> state_;
};

/// Seconds between two moments of one stream, which may be gone.
/// \pre the stream was waited for behind the later one
double seconds_between(const std::shared_ptr<void>& earlier,
                       const std::shared_ptr<void>& later);

/// Why no GPU can be used, in words; empty: there is one.
std::string absence();

/// GPUs of this machine.
int count();

/// \throws std::runtime_error
processor_facts facts_of(int gpu);

/// Bytes of a GPU's memory that nobody has taken; 0 if there is too little to ask.
/// \throws std::runtime_error
std::int64_t free_memory(int gpu);

/// Memory that all GPUs and this machine reach, wherever it is just now; of one GPU's
/// making. Whoever touches it here waits first for the work that writes it.
memory_space& unified_memory(int gpu);

/// Memory of this machine's that all GPUs reach where it is, over the bus.
memory_space& pinned_memory(int gpu);

} // namespace troupe::cuda
