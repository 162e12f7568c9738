// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/benchmarks/benchmarks.hpp"
#include "kernels/arrays.hpp"
#include "kernels/matmul.hpp"
#include "kernels/memory.hpp"

#include <array>
#include <random>

namespace troupe {

namespace {

constexpr int launches = 10; // in a row, so that the GPU does not wait

/// Memory that a GPU reaches, filled with random values.
tensor_memory random_on(memory_account& account, std::int64_t values) {
  tensor_memory result{values, account};
  std::minstd_rand dice{1};
  std::uniform_real_distribution<float> between{-1, 1};
  for (std::int64_t i = 0; i < values; ++i)
    result.data()[i] = between(dice);
  return result;
}

/// Median seconds of one launch.
template <class Launch>
double seconds_of_launch(const stream& gpu_stream, const Launch& launch) {
  launch();
  gpu_stream.wait();
  std::vector<double> durations;
  for (int i = 0; i < 5; ++i)
    durations.push_back(seconds_of([&] {
                          for (int n = 0; n < launches; ++n)
                            launch();
                          gpu_stream.wait();
                        })
                        / launches);
  return median(std::move(durations));
}

} // namespace

double gpu_product_rate(const processor& where, precision product_precision,
                        std::int64_t side) {
  auto gpu_stream = stream_on(where, 1, product_precision);
  memory_account account{memory_of(where)};
  const auto a = random_on(account, side * side), b = random_on(account, side * side);
  const tensor_memory c{side * side, account}, rounded{side * side, account};
  const auto matrix_of = [&](const tensor_memory& m) {
    return dense(m.data(), side, side);
  };
  std::array<stored_matrix<float>, 2> factors{matrix_of(a), matrix_of(b)};
  if (product_precision == precision::bf16) { // both in the memory of one
    auto* to = reinterpret_cast<bf16*>(rounded.data());
    for (auto& factor : factors) {
      const matrix<bf16> rounded_matrix{to, side, side, side, false};
      arrays<float>::copy(factor, rounded_matrix, gpu_stream);
      factor = rounded_matrix;
      to += side * side;
    }
  }
  const auto took = seconds_of_launch(gpu_stream, [&] {
    matmul<float>(factors[0], factors[1], 0.0F, matrix_of(c), gpu_stream);
  });
  const auto e = static_cast<double>(side);
  return 2 * e * e * e / took;
}

void measure_gpu(const benchmark& b) {
  auto where = b.plan.machine.processor_of(0);
  const auto side = b.gpu_side;
  const auto product = "product " + std::to_string(side) + "^3 of ";
  const auto on_it = " on " + to_string(where);
  where.tf32 = false;
  const double fp32 = gpu_product_rate(where, precision::fp32, side);
  b.report({"ceilings", product + "fp32" + on_it, fp32 / 1e9, "GFLOP/s", {}, ""});
  const double bf16 = gpu_product_rate(where, precision::bf16, side);
  b.report(
    {"ceilings", product + "bf16" + on_it, bf16 / 1e9, "GFLOP/s", bf16 / fp32, "fp32"});
  where.tf32 = true;
  const double tf32 = gpu_product_rate(where, precision::fp32, side);
  b.report(
    {"ceilings", product + "tf32" + on_it, tf32 / 1e9, "GFLOP/s", tf32 / fp32, "fp32"});
  auto gpu_stream = stream_on(where, 1, precision::fp32);
  memory_account account{memory_of(where)};
  const auto n = side * side;
  const auto from = random_on(account, n);
  const tensor_memory to{n, account};
  const auto took = seconds_of_launch(
    gpu_stream, [&] { arrays<float>::copy(from.data(), n, to.data(), gpu_stream); });
  b.report({"ceilings",
            "copy of memory" + on_it,
            static_cast<double>(2 * from.bytes()) / took / 1e9,
            "GB/s",
            {},
            ""});
}

} // namespace troupe
