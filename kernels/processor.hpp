// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/memory_space.hpp"
#include "kernels/processor_facts.hpp"
#include "kernels/stream.hpp"

#include <cstdint>
#include <string>

namespace troupe {

/// The processor of a rank: the CPU, or a GPU.
struct processor {
  static constexpr int cpu = -1;

  int gpu = cpu;     ///< Index of the GPU, from 0.
  bool tf32 = false; ///< A GPU rounds operands of fp32 products to 11 bits.

  bool is_gpu() const { return gpu != cpu; }
  bool operator==(const processor&) const = default;
};

/// "cpu", or "cuda:0".
std::string to_string(const processor& target);

/// Creates a stream on a processor.
/// \throws no_thread; std::runtime_error if there is no such GPU
stream stream_on(const processor& target, int threads, precision products);

/// The space for tensors that kernels of the processor and this machine's CPU read.
memory_space& memory_of(const processor& target);

/// The space for samples that this machine writes while kernels of the processor read
/// others. Only the samples that kernels read move between the memories.
memory_space& memory_of_samples(const processor& target);

/// Returns why no GPU can be used, as a sentence; empty if one can.
std::string absence_of_gpus();

/// Number of GPUs that can be used.
int count_of_gpus();

/// \throws std::runtime_error
processor_facts facts_of(const processor& target);

/// Bytes of a GPU's own memory that are free.
/// \throws std::runtime_error
std::int64_t free_memory_of(const processor& gpu);

} // namespace troupe
