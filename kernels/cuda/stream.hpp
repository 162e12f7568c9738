// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/cuda/library_product.hpp"
#include "kernels/memory_space.hpp"
#include "kernels/processor_facts.hpp"
#include "kernels/stored_matrix.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

struct CUstream_st;

// CUDA streams of one rank, and the memory and properties of GPUs.

namespace troupe {

struct attention_shape;

} // namespace troupe

namespace troupe::cuda {

struct product_choices;

/// Work spaces for kernels of a stream; each kind serves one launch after another.
enum class workspace : std::uint8_t {
  products,     ///< Work space of cuBLASLt.
  left_factor,  ///< Left factor of a product, rounded to bf16.
  right_factor, ///< Right factor of a product, rounded to bf16.
  sums,         ///< Sums of a product, before rounding.
  bias,         ///< Bias of a product, rounded to bf16.
  /// Values per row that a kernel writes or reads; parts of sums.
  rows,
  attention, ///< Work space of cuDNN.
};

/// A CUDA stream for one rank: kernels and cuBLASLt's products are launched without
/// waiting, and the stream owns the work space for both. For one thread at a time.
class stream {
public:
  /// \param gpu index of the GPU in this machine
  /// \param tf32 whether operands of fp32 products may be rounded to 11 bits
  /// \throws std::runtime_error if no GPU has this index, or the GPU cannot be used
  explicit stream(int gpu, bool tf32 = false);
  ~stream();
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;

  /// The handle of the CUDA stream. The GPU becomes current for the calling thread,
  /// which may launch kernels on the stream.
  CUstream_st* handle() const;

  /// Names the launches that follow on this thread, for tools that report launches: "F3
  /// of stage 1". An empty text ends the name. Each name must be ended on the same
  /// thread before the next.
  void name_launches(const std::string& name);

  /// Defers this thread's launches on this stream until stop_capture(). Deferred
  /// launches are made by launch_captured(). The calls that first call
  /// launch_captured(): wait(), wait_for(), on_complete(), functions that return an
  /// event, and space() if it allocates. A list of two or more launches that equals an
  /// earlier list runs as one graph, unless TROUPE_GRAPHS is off (launch_list.hpp).
  void capture_launches();

  /// Launches the deferred list. No effect unless this thread defers launches.
  /// \throws std::bad_alloc if memory is short
  /// \throws std::runtime_error if a launch fails
  void launch_captured();

  /// Drops deferred launches that were not launched, and ends the deferral.
  void stop_capture() noexcept;

  /// Callback of a completion; `failure` says why launched work failed, or is null.
  using completion_callback = std::function<void(std::exception_ptr failure)>;

  /// Calls `callback` when all work launched so far has ended, on a thread of the
  /// stream, one call after another.
  /// \param callback must not wait for the stream, nor throw
  /// \throws std::runtime_error if the GPU does not accept the request
  void on_complete(completion_callback callback);

  /// Waits until all launched work has ended, and all completion callbacks have
  /// returned.
  /// \throws std::runtime_error if work failed
  void wait();

  /// An event with a time on the GPU's clock: the end of all work launched so far.
  /// \throws std::runtime_error if the GPU does not accept the request
  std::shared_ptr<void> gpu_timestamp();

  /// An event without a time, after all work launched so far.
  /// \throws std::runtime_error if the GPU does not accept the request
  std::shared_ptr<void> event();

  /// Work launched on this stream from now on runs after all work before another
  /// stream's event. If the work before the event fails, the later work fails too, or
  /// never runs.
  /// \throws std::runtime_error if the GPU does not accept the request
  void wait_for(const std::shared_ptr<void>& event);

  bool tf32() const { return tf32_; }

  /// Index of the GPU.
  int gpu() const { return gpu_; }

  /// Version of the library for products: 130100 for cuBLASLt 13.1.0.
  std::int64_t product_version() const;

  /// Launches a product by cuBLASLt.
  /// \pre is_available() if the product has an epilogue, or c is bf16
  /// \throws std::bad_alloc
  /// \throws std::runtime_error if cuBLASLt has no algorithm, or a launch that is not
  /// deferred fails
  void launch_product(const library_product& product);

  /// Whether launch_product() runs this product: cuBLASLt has an algorithm for the
  /// sizes. A result of bf16 also needs accept_epilogue() for its epilogue.
  bool is_available(const library_product& product);

  /// Sets whether is_available() may accept results of bf16 with an epilogue of this
  /// kind; at first false.
  void accept_epilogue(epilogue_kind kind, bool accept);
  bool accepts_epilogue(epilogue_kind kind) const;

  /// Loads cuDNN for attention (library_checks.hpp). Returns one sentence that says why
  /// cuDNN cannot be used; empty if loaded.
  std::string load_attention();

  /// Launches attention by kernels of this program from now on. A real GPU's stream
  /// waits for all work first.
  void unload_attention();

  /// Version of the library for attention: 91900 for cuDNN 9.19.0; 0 if none is loaded.
  std::int64_t attention_version() const;

  /// Launches attention<float>::forward() by the library. Returns false, and launches
  /// nothing, if no library is loaded, or if library_can_attend() is false, or if the
  /// library has no algorithm. The first call for a combination of sizes and strides
  /// may take some seconds.
  /// \throws std::runtime_error if the launch fails
  bool attention_forward(const attention_shape& dims, stored_matrix<const float> qkv,
                         stored_matrix<float> y, float* log_sum);

  /// Launches attention<float>::backward(), as attention_forward() does.
  bool attention_backward(const attention_shape& dims, stored_matrix<const float> qkv,
                          stored_matrix<const float> y, const float* log_sum,
                          stored_matrix<const float> dy, stored_matrix<float> dqkv);

  /// From now on, measures cuBLASLt's algorithms for each new product that has a key
  /// (key_of()), when the product is launched, deferred or passed to is_available(). A
  /// measurement waits for the stream, and takes memory for a copy of the product's
  /// arrays. On the simulated GPU, which has no algorithms, nothing is measured.
  /// \param to receives the choices, until this object's end; not null
  void measure_choices(std::shared_ptr<product_choices> to);

  /// A work space of at least `bytes` bytes in the GPU's memory; this machine neither
  /// reads nor writes there. Contents may be lost after wait(), and when the space
  /// grows. The pointer is valid until a call asks for more bytes of `which`.
  /// \throws std::bad_alloc
  /// \throws std::runtime_error if the GPU fails for another reason
  void* space(workspace which, std::int64_t bytes);

  /// A pinned buffer of `result_bytes` bytes for the result of a kernel, which this
  /// machine reads after the kernel has ended. The buffer is free again when no pointer
  /// is left. The stream must outlive all pointers to the buffer.
  /// \throws std::bad_alloc
  /// \throws std::runtime_error if the GPU fails for another reason
  std::shared_ptr<void> result();

  static constexpr std::int64_t result_bytes = 64;

private:
  struct state;

  int gpu_;
  bool tf32_;
  std::unique_ptr<state> state_;
};

/// Seconds between two timestamps of one stream; the stream may have been destroyed.
/// \pre a wait for the stream followed the later timestamp
double seconds_between(const std::shared_ptr<void>& earlier,
                       const std::shared_ptr<void>& later);

/// Returns one sentence that says why no GPU can be used; empty if CUDA finds a GPU.
std::string unavailable_reason();

/// Number of GPUs that CUDA finds; 0 without a driver. The constructor of a stream may
/// refuse a GPU that is counted.
int count();

/// Kind and name of a GPU.
/// \throws std::runtime_error if the GPU does not exist or does not answer
processor_facts facts_of(int gpu);

/// Bytes of a GPU's memory that are free; 0 if memory is too short for this call.
/// \throws std::runtime_error if the GPU does not exist or does not answer
std::int64_t free_memory(int gpu);

/// Managed memory, allocated by one GPU, which all GPUs and this machine can access. A
/// thread of this machine must wait for the work that writes there before any access.
/// The space exists until the program ends.
memory_space& unified_memory(int gpu);

/// Pinned memory of this machine, which all GPUs access over the bus. The space exists
/// until the program ends.
memory_space& pinned_memory(int gpu);

} // namespace troupe::cuda
