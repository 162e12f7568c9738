// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/memory_space.hpp"
#include "kernels/processor_facts.hpp"
#include "kernels/stream.hpp"

#include <cstdint>
#include <string>

namespace troupe {

/// What computes for a rank: the CPU, or a GPU.
struct processor {
  static constexpr int cpu = -1;

  int gpu = cpu;     ///< By its number, from 0.
  bool tf32 = false; ///< A GPU rounds operands of products of fp32 to 11 bits.

  bool is_gpu() const { return gpu != cpu; }
  bool operator==(const processor&) const = default;
};

/// "cpu", or "cuda:0".
std::string to_string(const processor& what);

/// \throws no_thread; std::runtime_error if there is no such GPU
stream stream_on(const processor& where, int threads, precision products);

/// Where tensors are that kernels read there, and this machine as well.
memory_space& memory_of(const processor& where);

/// Where samples are that this machine writes while kernels there read others: nothing
/// moves from the one's memory to the other's but what is read.
memory_space& memory_of_samples(const processor& where);

/// Why no GPU can be used, in words; empty: one can.
std::string absence_of_gpus();

/// GPUs that can be used.
int count_of_gpus();

/// \throws std::runtime_error
processor_facts facts_of(const processor& what);

/// Bytes of a GPU's own memory that nobody has taken. \throws std::runtime_error
std::int64_t free_memory_of(const processor& gpu);

} // namespace troupe
