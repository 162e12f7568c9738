// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/processor.hpp"

#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/library_checks.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace troupe {

std::string to_string(const processor& target) {
  return target.is_gpu() ? "cuda:" + std::to_string(target.gpu) : "cpu";
}

namespace {

/// Reads one entry of --device. GPU 0 to most_gpus - 1 are allowed.
std::optional<processor> parse_device(const std::string& text) {
  processor result;
  if (text.starts_with("cuda:")) {
    const auto* const end = text.data() + text.size();
    std::from_chars(text.data() + 5, end, result.gpu);
  }
  const bool is_known = result.gpu >= processor::cpu && result.gpu < most_gpus;
  return is_known && text == to_string(result) ? std::optional{result} : std::nullopt;
}

} // namespace

tl::expected<std::vector<processor>, std::string> parse_devices(const std::string& text,
                                                                int gpus) {
  std::vector<processor> result;
  if (text == "cuda") {
    for (int gpu = 0; gpu < std::max(gpus, 1); ++gpu)
      result.push_back({gpu});
    return result;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    const auto part = text.substr(begin, end - begin);
    begin = end + 1;
    const auto device = parse_device(part);
    if (!device)
      return tl::unexpected{
        "--device '" + part
        + "': write only cpu, only cuda, or a list, for example cuda:0,cuda:1,cpu"};
    if (device->gpu >= gpus && gpus > 0)
      return tl::unexpected{
        "--device " + part + ": this machine has "
        + (gpus == 1 ? "one GPU, cuda:0"
                     : std::to_string(gpus)
                         + " GPUs, from cuda:0 to cuda:" + std::to_string(gpus - 1))};
    result.push_back(*device);
  }
  if (std::ranges::none_of(result, &processor::is_gpu))
    result.clear();
  return result;
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
