// SPDX-License-Identifier: BSD-3-Clause
// A GPU's routing of rows to experts, compared with the CPU's: integers are the same,
// also with ties.

#include "kernels/cuda/kernels.hpp"
#include "kernels/dispatch.hpp"
#include "kernels/top_k_gate.hpp"
#include "tests/kernels/cuda/judge.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::routing_test {

using gpu::stored_array;

namespace {

constexpr float no_number = std::numeric_limits<float>::quiet_NaN();

struct routes {
  std::int64_t rows;
  gate_rule rule;
};

/// k = 1, 2, 3; experts that take all, some or no rows; more rows than a warp reads at
/// once.
routes some_routes() {
  return GENERATE(routes{1, {.experts = 1, .chosen = 1, .capacity = 1}},
                  routes{40, {.experts = 2, .chosen = 1, .capacity = 12}},
                  routes{7, {.experts = 2, .chosen = 2, .capacity = 0}},
                  routes{150, {.experts = 5, .chosen = 2, .capacity = 40}},
                  routes{150, {.experts = 5, .chosen = 3, .capacity = 150}},
                  routes{37, {.experts = 33, .chosen = 3, .capacity = 2}},
                  routes{270, {.experts = 70, .chosen = 1, .capacity = 3}});
}

/// Logits that tie, or are well apart.
std::vector<float> some_logits(const routes& of) {
  auto result = random_values<float>(of.rows * of.rule.experts, 1);
  for (auto& x : result)
    x = std::round(x * 8) / 8;
  return result;
}

/// A gate's table on the CPU, from logits.
template <class Scalar>
struct cpu_gate {
  cpu_gate(const std::vector<float>& logits, const routes& of)
    : memory(static_cast<std::size_t>(
      gate_table<Scalar>::values(of.rows, of.rule.experts, of.rule.chosen))),
      table(memory.data(), of.rows, of.rule) {
    std::ranges::copy(logits, table.probabilities);
    stream on;
    top_k_gate<Scalar>::forward(table, on);
  }

  template <class Value>
  static std::vector<Value> copy(const Value* from, std::int64_t count) {
    return {from, from + count};
  }
  std::int64_t choices() const { return table.rows * table.rule.chosen; }
  std::vector<Scalar> probabilities() const {
    return copy(table.probabilities, table.rows * table.rule.experts);
  }
  std::vector<Scalar> weights() const { return copy(table.weights, choices()); }
  std::vector<std::int32_t> chosen() const { return copy(table.chosen, choices()); }
  std::vector<std::int32_t> places() const { return copy(table.positions, choices()); }
  std::vector<std::int32_t> counts() const {
    return copy(table.counts, table.rule.experts);
  }
  std::vector<std::int32_t> first() const {
    return copy(table.first, table.rule.experts);
  }

  std::vector<Scalar> memory;
  gate_table<Scalar> table;
};

/// A table in arrays of its own, so that accesses behind each array's end are found.
struct gpu_gate {
  gpu_gate(const std::vector<float>& logits, const routes& of)
    : probabilities("probabilities", logits, gpu::use::updated),
      weights("weights", of.rows * of.rule.chosen),
      chosen("chosen", of.rows * of.rule.chosen),
      places("places", of.rows * of.rule.chosen),
      counts("counts", of.rule.experts),
      first("first", of.rule.experts),
      table(table_of(of)) {
    // nop
  }

  explicit gpu_gate(const cpu_gate<float>& made)
    : probabilities("probabilities", made.probabilities()),
      weights("weights", made.weights()),
      chosen("chosen", made.chosen()),
      places("places", made.places()),
      counts("counts", made.counts()),
      first("first", made.first()),
      table(table_of({made.table.rows, made.table.rule})) {
    // nop
  }

  gate_table<float> table_of(const routes& of) const {
    std::vector<float> unused(static_cast<std::size_t>(
      gate_table<float>::values(of.rows, of.rule.experts, of.rule.chosen)));
    gate_table<float> result{unused.data(), of.rows, of.rule};
    result.probabilities = probabilities.data();
    result.weights = weights.data();
    result.chosen = chosen.data();
    result.positions = places.data();
    result.counts = counts.data();
    result.first = first.data();
    return result;
  }

  gpu::array<float> probabilities, weights;
  gpu::array<std::int32_t> chosen, places, counts, first;
  gate_table<float> table;
};

gpu::results table_of_gpu(const std::vector<float>& logits, const routes& of) {
  return gpu::in_every_order([&] {
    const gpu_gate gate{logits, of};
    cuda::top_k_gate::forward(gate.table, nullptr);
    gpu::wait();
    return gpu::results{
      gate.probabilities.values(),          gate.weights.values(),
      gpu::as_floats(gate.chosen.values()), gpu::as_floats(gate.places.values()),
      gpu::as_floats(gate.counts.values()), gpu::as_floats(gate.first.values())};
  });
}

void check_integers(const gpu::results& made, const cpu_gate<float>& expected) {
  CHECK(made[2] == gpu::as_floats(expected.chosen()));
  CHECK(made[3] == gpu::as_floats(expected.places()));
  CHECK(made[4] == gpu::as_floats(expected.counts()));
  CHECK(made[5] == gpu::as_floats(expected.first()));
}

bool is_sent(const cpu_gate<float>& by, std::int64_t row) {
  const auto* const places = by.table.positions + row * by.table.rule.chosen;
  return std::any_of(places, places + by.table.rule.chosen,
                     [](std::int32_t place) { return place >= 0; });
}

} // namespace

TEST_CASE("a GPU's gate chooses and places as the CPU's", "[cuda]") {
  GPU_OR_SKIP();
  const auto of = some_routes();
  CAPTURE(of.rows, of.rule.experts, of.rule.chosen, of.rule.capacity);
  const auto logits = some_logits(of);
  const auto made = table_of_gpu(logits, of);
  check_integers(made, cpu_gate<float>{logits, of});
  const cpu_gate<double> exact{logits, of};
  CHECK(relative_difference(made[0], exact.probabilities()) < gpu::near_fp32);
  CHECK(relative_difference(made[1], exact.weights()) < gpu::near_fp32);
}

TEST_CASE("a GPU's experts tie where the CPU's do", "[cuda]") {
  GPU_OR_SKIP();
  // All tie; and some whose probabilities are too small to distinguish.
  const routes of{4, {.experts = 5, .chosen = 3, .capacity = 3}};
  const std::vector<float> logits{7,    7, 7,   7,   7,   /**/ 0, -100, -90, -110, -95,
                                  -300, 9, -95, -95, -88, /**/ 1, 2,    2,   1,    2};
  check_integers(table_of_gpu(logits, of), cpu_gate<float>{logits, of});
}

TEST_CASE("a row of NaNs still goes to experts that a GPU has", "[cuda]") {
  GPU_OR_SKIP();
  const routes of{3, {.experts = 3, .chosen = 2, .capacity = 3}};
  const auto made = table_of_gpu({3, 2, 1, /**/ 1, no_number, 2, /**/ 1, 2, 3}, of);
  CHECK(made[2] == std::vector<float>{0, 1, 0, 1, 2, 1});
  CHECK(made[3] == std::vector<float>{0, 2, 1, 3, 5, 4});
  CHECK(std::isnan(made[1][2]));
}

TEST_CASE("a GPU's gate has the CPU's gradients", "[cuda]") {
  GPU_OR_SKIP();
  const auto of = some_routes();
  const float balance = GENERATE(0.0F, 20.0F);
  CAPTURE(of.rows, of.rule.experts, of.rule.chosen, of.rule.capacity, balance);
  const auto logits = some_logits(of);
  const auto dweights = random_values<float>(of.rows * of.rule.chosen, 2);
  const auto values = of.rows * of.rule.experts;

  const auto made = gpu::in_every_order([&] {
    const gpu_gate gate{cpu_gate<float>{logits, of}};
    const gpu::array<float> gdweights{"dweights", dweights}, dlogits{"dlogits", values};
    cuda::top_k_gate::backward(gate.table, gdweights.data(), balance, dlogits.data(),
                               nullptr);
    gpu::wait();
    return gpu::results{dlogits.values()};
  });

  const cpu_gate<double> exact{logits, of};
  std::vector<double> dlogits(static_cast<std::size_t>(values));
  stream on;
  top_k_gate<double>::backward(exact.table, gpu::exact(dweights).data(), balance,
                               dlogits.data(), on);
  CHECK(relative_difference(made[0], dlogits) < gpu::near_fp32);
}

TEST_CASE("a GPU sends rows to experts and back as the CPU does", "[cuda]") {
  GPU_OR_SKIP();
  const auto of = some_routes();
  const auto [C, gap] =
    GENERATE(table<std::int64_t, std::int64_t>({{1, 0}, {37, 2}, {264, 8}, {16, 3}}));
  CAPTURE(of.rows, of.rule.experts, of.rule.chosen, of.rule.capacity, C);
  const auto logits = some_logits(of);
  const cpu_gate<float> gate{logits, of};
  const cpu_gate<double> exact_gate{logits, of};
  const auto R = of.rows, moved = std::max<std::int64_t>(R * of.rule.chosen, 1);
  std::int64_t sent = 0;
  for (const auto count : gate.counts())
    sent += count;
  // Rows behind the sent ones are not read, and neither are rows that were not sent.
  auto x = random_values<float>(R * C, 2), y = random_values<float>(R * C, 3),
       dy = random_values<float>(R * C, 4), dx = random_values<float>(R * C, 5),
       outputs = random_values<float>(moved * C, 6),
       dinputs = random_values<float>(moved * C, 7);
  for (auto* const rows : {&outputs, &dinputs})
    std::fill(rows->begin() + sent * C, rows->end(), no_number);
  for (std::int64_t r = 0; r < R; ++r)
    for (auto* const rows : {&x, &dy})
      if (!is_sent(gate, r))
        std::fill_n(rows->begin() + r * C, C, no_number);

  const auto made = gpu::in_every_order([&, C = C, gap = gap] {
    const gpu_gate by{gate};
    const stored_array::size dims{R, C, gap};
    const auto fp32 = precision::fp32;
    const stored_array gx{"x", x, dims, fp32}, gdy{"dy", dy, dims, fp32},
      gy{"y", y, dims, fp32, gpu::use::updated},
      gdx{"dx", dx, dims, fp32, gpu::use::updated};
    const gpu::array<float> goutputs{"outputs", outputs}, gdinputs{"dinputs", dinputs},
      inputs{"inputs", sent * C}, doutputs{"doutputs", sent * C},
      dweights{"dweights", R * of.rule.chosen};
    cuda::dispatch::send(by.table, gx.in().plain(), inputs.data(), nullptr);
    cuda::dispatch::combine(by.table, goutputs.data(), gy.out().plain(), nullptr);
    cuda::dispatch::combine_gradient(by.table, goutputs.data(), gdy.in().plain(),
                                     doutputs.data(), dweights.data(), nullptr);
    cuda::dispatch::send_gradient(by.table, gdinputs.data(), gdx.out().plain(),
                                  nullptr);
    gpu::wait();
    return gpu::results{inputs.values(), gy.values(), doutputs.values(),
                        dweights.values(), gdx.values()};
  });

  const auto xd = gpu::exact(x), dyd = gpu::exact(dy), outputsd = gpu::exact(outputs),
             dinputsd = gpu::exact(dinputs);
  auto yd = gpu::exact(y), dxd = gpu::exact(dx);
  std::vector<double> inputs(static_cast<std::size_t>(sent * C)),
    doutputs = inputs, dweights(static_cast<std::size_t>(R * of.rule.chosen));
  stream on;
  using cpu = dispatch<double>;
  cpu::send(exact_gate.table, dense(xd.data(), R, C), inputs.data(), on);
  cpu::combine(exact_gate.table, outputsd.data(), dense(yd.data(), R, C), on);
  cpu::combine_gradient(exact_gate.table, outputsd.data(), dense(dyd.data(), R, C),
                        doutputs.data(), dweights.data(), on);
  cpu::send_gradient(exact_gate.table, dinputsd.data(), dense(dxd.data(), R, C), on);
  CHECK(gpu::exact(made[0]) == inputs);
  CHECK(relative_difference(made[1], yd) < gpu::near_fp32);
  CHECK(relative_difference(made[2], doutputs) < gpu::near_fp32);
  CHECK(relative_difference(made[3], dweights) < gpu::near_fp32);
  CHECK(relative_difference(made[4], dxd) < gpu::near_fp32);
}

TEST_CASE("a GPU adds what experts say in the order of a row's choices", "[cuda]") {
  GPU_OR_SKIP();
  const routes of{1, {.experts = 3, .chosen = 3, .capacity = 1}};
  cpu_gate<float> gate{{2, 1, 3}, of}; // at places 2, 0, 1
  std::fill_n(gate.table.weights, 3, 1.0F);
  const auto made = gpu::in_every_order([&] {
    const gpu_gate by{gate};
    // In the order of places, or backwards, the sum is 0.
    const gpu::array<float> rows{"rows", {-1e9F, 1, 1e9F}};
    const gpu::array<float> y{"y", {0}, gpu::use::updated},
      dx{"dx", {0}, gpu::use::updated};
    cuda::dispatch::combine(by.table, rows.data(), dense(y.data(), 1, 1), nullptr);
    cuda::dispatch::send_gradient(by.table, rows.data(), dense(dx.data(), 1, 1),
                                  nullptr);
    gpu::wait();
    return gpu::results{y.values(), dx.values()};
  });
  CHECK(made[0] == std::vector{1.0F});
  CHECK(made[1] == std::vector{1.0F});
}

} // namespace troupe::routing_test
