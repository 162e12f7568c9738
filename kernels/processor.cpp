// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/processor.hpp"

#include "kernels/cuda/dispatch.hpp"

#include <memory>
#include <stdexcept>

namespace troupe {

std::string to_string(const processor& what) {
  return what.is_gpu() ? "cuda:" + std::to_string(what.gpu) : "cpu";
}

std::string absence_of_gpus() {
  if constexpr (cuda::is_built)
    return cuda::absence();
  return "this build is without CUDA: cmake found no toolkit of NVIDIA's, or was told "
         "to leave it out";
}

int count_of_gpus() {
  if constexpr (cuda::is_built)
    return cuda::count();
  return 0;
}

stream stream_on(const processor& where, int threads, precision products) {
  if (!where.is_gpu())
    return stream{threads, products};
  if constexpr (cuda::is_built)
    return stream{1, products, std::make_shared<cuda::stream>(where.gpu, where.tf32)};
  throw std::runtime_error{absence_of_gpus()};
}

processor_facts facts_of(const processor& what) {
  if constexpr (cuda::is_built)
    if (what.is_gpu())
      return cuda::facts_of(what.gpu);
  return {};
}

std::int64_t free_memory_of(const processor& gpu) {
  if constexpr (cuda::is_built)
    return cuda::free_memory(gpu.gpu);
  throw std::runtime_error{absence_of_gpus()};
}

memory_space& memory_of(const processor& where) {
  if constexpr (cuda::is_built)
    if (where.is_gpu())
      return cuda::unified_memory(where.gpu);
  return host_memory();
}

memory_space& memory_of_samples(const processor& where) {
  if constexpr (cuda::is_built)
    if (where.is_gpu())
      return cuda::pinned_memory(where.gpu);
  return host_memory();
}

} // namespace troupe
