// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/memory_space.hpp"
#include "kernels/processor_facts.hpp"
#include "kernels/stream.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// The processor of a rank: the CPU, or a GPU.
struct processor {
  static constexpr int cpu = -1;

  int gpu = cpu;     ///< Index of the GPU, from 0.
  bool tf32 = false; ///< True if a GPU rounds operands of fp32 products to 11 bits.

  bool is_gpu() const { return gpu != cpu; }
  bool operator==(const processor&) const = default;
};

/// Returns "cpu", or "cuda:0" for GPU 0.
std::string to_string(const processor& target);

/// GPU numbers of a machine start at 0 and are below this limit.
inline constexpr int most_gpus = 1024;

/// Reads --device: "cpu", "cuda" (all GPUs of a machine), or a list such as
/// "cuda:0,cuda:1,cpu". Ranks take the processors in rotation. The result is empty if
/// all ranks are on the CPU. The error is one sentence.
/// \param gpus number of the machine's GPUs; 0: unknown, so that "cuda" gives one GPU
/// and numbers below most_gpus are allowed
tl::expected<std::vector<processor>, std::string> parse_devices(const std::string& text,
                                                                int gpus);

/// Creates a stream on a processor.
/// \param threads number of CPU threads of the stream; ignored for a GPU
/// \throws no_thread
/// \throws std::runtime_error if the GPU does not exist or cannot be used
stream stream_on(const processor& target, int threads, precision products);

/// The libraries of streams that stream_on() has made for a processor. Thread-safe.
gpu_libraries libraries_of(const processor& target);

/// The space for tensors that kernels of the processor and this machine's CPU read.
memory_space& memory_of(const processor& target);

/// The space for samples. This machine may write samples while kernels of the processor
/// read other samples. Only the samples that kernels read move to a GPU.
memory_space& memory_of_samples(const processor& target);

/// Returns one sentence that says why no GPU can be used; empty if CUDA finds a GPU.
std::string absence_of_gpus();

/// Number of GPUs that CUDA finds; 0 without CUDA or a driver. stream_on() may refuse a
/// GPU that is counted.
int count_of_gpus();

/// Returns the identity of a GPU; empty texts for the CPU.
/// \throws std::runtime_error if the GPU does not exist or does not answer
processor_facts facts_of(const processor& target);

/// Bytes of a GPU's own memory that are free; 0 if memory is too short for this call.
/// \pre the processor is a GPU
/// \throws std::runtime_error if the GPU does not exist or does not answer
std::int64_t free_memory_of(const processor& gpu);

} // namespace troupe
