// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/processor.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/switched_off.hpp"

#include <memory>
#include <stdexcept>
#include <utility>

namespace troupe {

std::string to_string(const processor& target) {
  return target.is_gpu() ? "cuda:" + std::to_string(target.gpu) : "cpu";
}

std::string absence_of_gpus() {
  if constexpr (cuda::is_built)
    return cuda::unavailable_reason();
  return "this build is without CUDA: cmake found no CUDA toolkit, or CUDA was "
         "switched off";
}

int count_of_gpus() {
  if constexpr (cuda::is_built)
    return cuda::count();
  return 0;
}

stream stream_on(const processor& target, int threads, precision products) {
  if (!target.is_gpu())
    return stream{threads, products};
  if constexpr (cuda::is_built) {
    auto gpu_stream = std::make_shared<cuda::stream>(target.gpu, target.tf32);
    if (products == precision::bf16 && !switched_off("TROUPE_EPILOGUES")) {
      gpu_stream->use_epilogues(true);
      gpu_stream->use_epilogues(
        cuda::error_of_epilogues(*gpu_stream, cuda::unified_memory(target.gpu))
          .empty());
    }
    return stream{1, products, std::move(gpu_stream)};
  }
  throw std::runtime_error{absence_of_gpus()};
}

processor_facts facts_of(const processor& target) {
  if constexpr (cuda::is_built)
    if (target.is_gpu())
      return cuda::facts_of(target.gpu);
  return {};
}

std::int64_t free_memory_of(const processor& gpu) {
  if constexpr (cuda::is_built)
    return cuda::free_memory(gpu.gpu);
  throw std::runtime_error{absence_of_gpus()};
}

memory_space& memory_of(const processor& target) {
  if constexpr (cuda::is_built)
    if (target.is_gpu())
      return cuda::unified_memory(target.gpu);
  return host_memory();
}

memory_space& memory_of_samples(const processor& target) {
  if constexpr (cuda::is_built)
    if (target.is_gpu())
      return cuda::pinned_memory(target.gpu);
  return host_memory();
}

} // namespace troupe
