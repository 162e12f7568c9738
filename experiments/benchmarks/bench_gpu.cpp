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
double seconds_of_launch(const stream& on, const Launch& launch) {
  launch();
  on.wait();
  std::vector<double> taken;
  for (int i = 0; i < 5; ++i)
    taken.push_back(seconds_of([&] {
                      for (int n = 0; n < launches; ++n)
                        launch();
                      on.wait();
                    })
                    / launches);
  return median(std::move(taken));
}

} // namespace

double gpu_product_rate(const processor& where, precision by, std::int64_t edge) {
  auto on = stream_on(where, 1, by);
  memory_account account{memory_of(where)};
  const auto a = random_on(account, edge * edge), b = random_on(account, edge * edge);
  const tensor_memory c{edge * edge, account}, rounded{edge * edge, account};
  const auto matrix_of = [&](const tensor_memory& m) {
    return dense(m.data(), edge, edge);
  };
  std::array<stored_matrix<float>, 2> factors{matrix_of(a), matrix_of(b)};
  if (by == precision::bf16) { // both in the memory of one
    auto* to = reinterpret_cast<bf16*>(rounded.data());
    for (auto& factor : factors) {
      const matrix<bf16> made{to, edge, edge, edge, false};
      arrays<float>::copy(factor, made, on);
      factor = made;
      to += edge * edge;
    }
  }
  const auto took = seconds_of_launch(
    on, [&] { matmul<float>(factors[0], factors[1], 0.0F, matrix_of(c), on); });
  const auto e = static_cast<double>(edge);
  return 2 * e * e * e / took;
}

void measure_gpu(const benchmark& b) {
  auto where = b.plan.processor_of(0);
  const auto edge = b.gpu_edge;
  const auto product = "product " + std::to_string(edge) + "^3 of ";
  const auto on_it = " on " + to_string(where);
  where.tf32 = false;
  const double fp32 = gpu_product_rate(where, precision::fp32, edge);
  b.report({"ceilings", product + "fp32" + on_it, fp32 / 1e9, "GFLOP/s", {}, ""});
  const double bf16 = gpu_product_rate(where, precision::bf16, edge);
  b.report(
    {"ceilings", product + "bf16" + on_it, bf16 / 1e9, "GFLOP/s", bf16 / fp32, "fp32"});
  where.tf32 = true;
  const double tf32 = gpu_product_rate(where, precision::fp32, edge);
  b.report(
    {"ceilings", product + "tf32" + on_it, tf32 / 1e9, "GFLOP/s", tf32 / fp32, "fp32"});
  auto on = stream_on(where, 1, precision::fp32);
  memory_account account{memory_of(where)};
  const auto n = edge * edge;
  const auto from = random_on(account, n);
  const tensor_memory to{n, account};
  const auto took =
    seconds_of_launch(on, [&] { arrays<float>::copy(from.data(), n, to.data(), on); });
  b.report({"ceilings",
            "copy of memory" + on_it,
            static_cast<double>(2 * from.bytes()) / took / 1e9,
            "GB/s",
            {},
            ""});
}

} // namespace troupe
