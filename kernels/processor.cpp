// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/processor.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/library_checks.hpp"

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
    auto gpu = std::make_shared<cuda::stream>(target.gpu, target.tf32);
    if (products == precision::bf16) { // results say which libraries are used
      cuda::use_library_epilogues(*gpu);
      cuda::use_attention_library(*gpu);
    }
    return stream{1, products, std::move(gpu)};
  }
  throw std::runtime_error{absence_of_gpus()};
}

processor_facts facts_of(const processor& target) {
  if constexpr (cuda::is_built)
    if (target.is_gpu())
      return cuda::facts_of(target.gpu);
  return {};
}

gpu_libraries libraries_of(const processor& target) {
  if constexpr (cuda::is_built)
    if (target.is_gpu())
      return cuda::libraries_of(target.gpu);
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
