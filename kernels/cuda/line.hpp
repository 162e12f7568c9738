#pragma once

#include "kernels/memory_space.hpp"
#include "kernels/stored_matrix.hpp"

#include <cstdint>
#include <memory>
#include <string>

struct CUstream_st;

namespace troupe::cuda {

/// Rooms of a line's, each for one use at a time.
enum class room : std::uint8_t {
  products,     ///< What cuBLASLt works with.
  left_factor,  ///< Of a product, rounded;
  right_factor, ///< likewise.
  sums,         ///< Of a product, before they are rounded.
  rows,         ///< What a kernel says of each row.
};

/// A GPU as one rank has it: a stream of its own, on which work is launched and not
/// waited for, products, and space for what they need. For one thread at a time.
class line {
public:
  /// \param gpu by its number
  /// \param tf32 whether operands of fp32 products may be rounded to 11 bits
  /// \throws std::runtime_error if there is none of that number, or it cannot be used
  explicit line(int gpu, bool tf32 = false);
  ~line();
  line(const line&) = delete;
  line& operator=(const line&) = delete;

  /// CUDA's stream; kernels can be launched on it by this thread.
  CUstream_st* on() const;

  /// Until all that was launched has ended. \throws std::runtime_error if it failed
  void wait();

  bool tf32() const { return tf32_; }

  /// c = a b + beta c, each as read. a and b are of one type; c is fp32, sums are too.
  /// With beta 0, c may hold anything. \param rounds operands of fp32 to 11 bits
  void product(stored_matrix<const float> a, stored_matrix<const float> b, float beta,
               matrix<float> c, bool rounds);

  /// A room of that many bytes at least, which this machine reaches as well. Waits
  /// where it must grow. \throws std::bad_alloc
  void* space(room which, std::int64_t bytes);

private:
  struct state;

  bool tf32_;
  std::unique_ptr<state> state_;
};

/// Why no GPU can be used, in words; empty: there is one.
std::string absence();

/// GPUs of this machine.
int count();

/// Whether a GPU's kernels reach all memory of this machine.
bool reaches_host_memory(int gpu);

/// Memory that all GPUs and this machine reach, wherever it is just now; of one GPU's
/// making. Whoever touches it here waits first for the work that writes it.
memory_space& unified_memory(int gpu);

} // namespace troupe::cuda
