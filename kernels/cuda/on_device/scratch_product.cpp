// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_device/scratch_product.hpp"

#include "kernels/bf16.hpp"
#include "kernels/cuda/on_device/check.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <random>

namespace troupe::cuda {

namespace {

constexpr int rounds = 5;
constexpr int launches = 3; // of each kind in a round

/// Random values of one type, in bytes. Their number is prime: where an array repeats
/// the values, rows differ.
template <class Value, class Convert>
std::vector<Value> random_values(const Convert& convert) {
  std::vector<Value> result(1'000'003);
  std::minstd_rand dice{1};
  std::uniform_real_distribution<float> between{-1, 1};
  for (auto& value : result)
    value = convert(between(dice));
  return result;
}

/// Fills an array of a GPU with repetitions of values.
/// \pre bytes are a multiple of a value's size
template <class Value>
void fill(void* array, std::int64_t bytes, const std::vector<Value>& values,
          cudaStream_t stream) {
  const auto size = static_cast<std::size_t>(bytes);
  auto filled = std::min(size, values.size() * sizeof(Value));
  check(cudaMemcpyAsync(array, values.data(), filled, cudaMemcpyHostToDevice, stream),
        "copy memory");
  for (std::size_t next = 0; filled < size; filled += next) {
    next = std::min(filled, size - filled);
    check(cudaMemcpyAsync(static_cast<char*>(array) + filled, array, next,
                          cudaMemcpyDeviceToDevice, stream),
          "copy memory");
  }
}

std::shared_ptr<void> memory_of(std::int64_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, static_cast<std::size_t>(bytes)), "take memory");
  return {memory, [](void* taken) { cudaFree(taken); }};
}

std::shared_ptr<CUevent_st> timed_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "make an event");
  return {event, [](cudaEvent_t made) { cudaEventDestroy(made); }};
}

} // namespace

scratch_product::scratch_product(const library_product& original,
                                 std::int64_t workspace_bytes, CUstream_st* stream)
  : stream_(stream), product_(original), workspace_(memory_of(workspace_bytes)) {
  const auto replace_matrix = [this](auto& m) {
    const auto value = m.is_bf16 ? sizeof(bf16) : sizeof(float);
    replace(m.data, m.rows * m.columns * static_cast<std::int64_t>(value), m.is_bf16);
  };
  replace_matrix(product_.a);
  replace_matrix(product_.b);
  replace_matrix(product_.c);
  replace_matrix(product_.x);
  replace_matrix(product_.y);
  replace(product_.bias, product_.c.columns * static_cast<std::int64_t>(sizeof(bf16)),
          true);
  check(cudaStreamSynchronize(stream), "copy memory");
}

/// Replaces an array by memory with random values; a null pointer stays.
template <class Scalar>
void scratch_product::replace(Scalar*& array, std::int64_t bytes, bool is_bf16) {
  static const auto floats = random_values<float>([](float value) { return value; });
  static const auto rounded =
    random_values<bf16>([](float value) { return bf16{bf16_of(value)}; });
  if (array == nullptr)
    return;
  arrays_.push_back(memory_of(bytes));
  auto* const memory = arrays_.back().get();
  is_bf16 ? fill(memory, bytes, rounded, stream_)
          : fill(memory, bytes, floats, stream_);
  array = static_cast<Scalar*>(memory);
}

std::vector<double>
microseconds_of_turns(std::size_t kinds,
                      const std::function<bool(std::size_t kind)>& launch,
                      CUstream_st* stream) {
  const auto begin = timed_event(), end = timed_event();
  std::vector<std::vector<float>> times(kinds);
  std::vector<double> result(kinds, std::numeric_limits<double>::infinity());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      if (!launch(kind)) // runs while the thread launches what is measured
        continue;
      check(cudaEventRecord(begin.get(), stream), "record an event");
      for (int i = 0; i < launches; ++i)
        launch(kind);
      check(cudaEventRecord(end.get(), stream), "record an event");
      check(cudaEventSynchronize(end.get()), "compute");
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()),
            "say how long it took");
      times[kind].push_back(milliseconds * 1000 / launches);
    }
  for (std::size_t kind = 0; kind < kinds; ++kind)
    if (!times[kind].empty()) {
      const auto middle =
        times[kind].begin() + static_cast<std::ptrdiff_t>((times[kind].size() - 1) / 2);
      std::ranges::nth_element(times[kind], middle);
      result[kind] = static_cast<double>(*middle);
    }
  return result;
}

} // namespace troupe::cuda
