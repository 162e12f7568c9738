// SPDX-License-Identifier: BSD-3-Clause
// A real GPU's memory.

#include "tests/kernels/cuda/gpu_array.hpp"

#include <cuda_runtime.h>

#include <stdexcept>

namespace gpu {

namespace {

void check(cudaError_t state) {
  if (state != cudaSuccess)
    throw std::runtime_error{cudaGetErrorString(state)};
}

} // namespace

memory::memory(std::string, const void* initial, std::int64_t bytes, std::int64_t, use)
  : bytes_(bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  check(cudaMalloc(&data_, size));
  if (initial != nullptr)
    check(cudaMemcpy(data_, initial, size, cudaMemcpyHostToDevice));
  else
    check(cudaMemset(data_, 0xff, size)); // NaNs
  check(cudaDeviceSynchronize());         // streams do not wait for the memset
}

memory::~memory() {
  cudaFree(data_);
}

std::vector<unsigned char> memory::bytes() const {
  std::vector<unsigned char> result(static_cast<std::size_t>(bytes_));
  check(cudaMemcpy(result.data(), data_, result.size(), cudaMemcpyDeviceToHost));
  return result;
}

void wait() {
  check(cudaDeviceSynchronize());
}

std::string absent() {
  int count = 0;
  const auto state = cudaGetDeviceCount(&count);
  if (state != cudaSuccess)
    return cudaGetErrorString(state);
  return count > 0 ? "" : "this machine has no GPU";
}

std::vector<std::vector<float>>
in_every_order(const std::function<std::vector<std::vector<float>>()>& run) {
  auto first = run();
  const auto other = run();
  for (std::size_t i = 0; i < first.size(); ++i)
    if (!same_bits(first[i], other.at(i)))
      throw std::logic_error{"a second run makes other bits of array "
                             + std::to_string(i)};
  return first;
}

} // namespace gpu
