// SPDX-License-Identifier: BSD-3-Clause
// Products in a GPU's queue, as layers request products, compared with the CPU's in
// double.

#include "kernels/cuda/library_checks.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/matmul.hpp"
#include "kernels/processor.hpp"
#include "kernels/vector_math.hpp"
#include "tests/kernels/cuda/judge.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstdlib>

namespace troupe::products_test {

using gpu::stored_array;

namespace {

stream gpu_stream(precision products, bool library_epilogues = false) {
  auto on_gpu = std::make_shared<cuda::stream>(0);
  for (const auto kind :
       {epilogue_kind::none, epilogue_kind::bias, epilogue_kind::bias_gelu,
        epilogue_kind::bias_residual, epilogue_kind::gelu_gradient})
    on_gpu->accept_epilogue(kind, library_epilogues);
  return stream{1, products, std::move(on_gpu)};
}

/// Turns what the CPU's kernels in double compute into what a GPU's compute: v as the c
/// of bias_gelu, whose gradient multiplies by GELU's slope there.
void expect_inputs_of_gelu(epilogue<double>& end, std::vector<double>& x) {
  if (end.kind == epilogue_kind::bias_gelu)
    end.kind = epilogue_kind::bias;
  if (end.kind == epilogue_kind::gelu_gradient)
    for (auto& value : x)
      value = gelu_and_slope(value).slope;
}

/// The size of a stored factor that reads as (rows, columns).
stored_array::size stored_size(std::int64_t rows, std::int64_t columns, bool transposed,
                               std::int64_t gap) {
  return transposed ? stored_array::size{columns, rows, gap}
                    : stored_array::size{rows, columns, gap};
}

stored_matrix<const double> read_as(const std::vector<double>& values,
                                    const stored_array::size& dims, bool transposed) {
  const auto m = dense(values.data(), dims.rows, dims.columns);
  return transposed ? m.t() : m;
}

} // namespace

TEST_CASE("a GPU's product and what follows it are the CPU's", "[cuda]") {
  GPU_OR_SKIP();
  const auto by = GENERATE(precision::fp32, precision::bf16);
  const auto [M, N, K, gap] =
    GENERATE(table<std::int64_t, std::int64_t, std::int64_t, std::int64_t>(
      {{1, 1, 1, 0}, {8, 16, 24, 0}, {16, 8, 40, 8}, {40, 24, 8, 0}}));
  const bool a_t = GENERATE(false, true), b_t = GENERATE(false, true);
  const auto what =
    GENERATE(epilogue_kind::none, epilogue_kind::bias, epilogue_kind::bias_gelu,
             epilogue_kind::bias_residual, epilogue_kind::gelu_gradient);
  const bool rounds_c = by == precision::bf16 && GENERATE(false, true);
  const bool by_library = rounds_c && GENERATE(false, true);
  const bool adds = !rounds_c && what == epilogue_kind::none && GENERATE(false, true);
  CAPTURE(M, N, K, a_t, b_t, static_cast<int>(what), rounds_c, by_library, adds);
  const auto a_size = stored_size(M, K, a_t, gap), b_size = stored_size(K, N, b_t, gap);
  const stored_array::size c_size{M, N, gap};
  const auto c_stored = rounds_c ? precision::bf16 : precision::fp32;
  const auto a = random_values<float>(M * K, 1), b = random_values<float>(K * N, 2),
             before = random_values<float>(M * N, 3),
             offsets = random_values<float>(N, 4),
             x = gpu::rounded(random_values<float>(M * N, 5), c_stored);
  // Where products are rounded, a arrives rounded, and b is rounded on the way.
  const auto ra = gpu::rounded(a, by), rb = gpu::rounded(b, by);

  const auto made = gpu::in_every_order([&] {
    const stored_array ga{"a", ra, a_size, by}, gb{"b", b, b_size, precision::fp32},
      gx{"x", x, c_size, c_stored}, y{"y", c_size, c_stored};
    const auto c = adds ? std::make_unique<stored_array>("c", before, c_size, c_stored,
                                                         gpu::use::updated)
                        : std::make_unique<stored_array>("c", c_size, c_stored);
    const gpu::array<float> bias{"bias", offsets};
    auto on = gpu_stream(by, by_library);
    epilogue<float> end;
    end.kind = what;
    if (what != epilogue_kind::none && what != epilogue_kind::gelu_gradient)
      end.bias = bias.data();
    if (what == epilogue_kind::bias_gelu)
      end.y = y.out();
    if (what == epilogue_kind::gelu_gradient || what == epilogue_kind::bias_residual)
      end.x = gx.in();
    matmul<float>(a_t ? ga.in().t() : ga.in(), b_t ? gb.in().t() : gb.in(),
                  adds ? 1.0F : 0.0F, c->out(), on, end);
    on.gpu()->wait();
    return gpu::results{c->values(), what == epilogue_kind::bias_gelu
                                       ? y.values()
                                       : std::vector<float>{}};
  });

  const auto ad = gpu::exact(ra), bd = gpu::exact(rb), offsetsd = gpu::exact(offsets);
  auto xd = gpu::exact(x), c = gpu::exact(before);
  std::vector<double> y(c.size());
  epilogue<double> end;
  end.kind = what;
  end.bias = offsetsd.data();
  end.x = dense(xd.data(), M, N);
  end.y = dense(y.data(), M, N);
  stream on;
  const auto multiply = [&, M = M, N = N] {
    matmul<double>(read_as(ad, a_size, a_t), read_as(bd, b_size, b_t), adds ? 1 : 0,
                   dense(c.data(), M, N), on, end);
  };
  if (what == epilogue_kind::bias_gelu) {
    multiply();
    CHECK(relative_difference(made[1], y) < gpu::near(c_stored));
  }
  expect_inputs_of_gelu(end, xd);
  multiply();
  CHECK(relative_difference(made[0], c) < gpu::near(c_stored));
}

TEST_CASE("the library's epilogues agree with this build's, and are used", "[cuda]") {
  GPU_OR_SKIP();
  const auto on = stream_on(processor{.gpu = 0}, 1, precision::bf16);
  constexpr std::int64_t M = 16, N = 8, K = 8;
  const stored_array a{"a", {M, K}, precision::bf16}, b{"b", {K, N}, precision::bf16},
    c{"c", {M, N}, precision::bf16};
  CHECK(cuda::libraries_of(0).epilogues.starts_with("cuBLASLt "));
  CHECK(on.gpu()->is_available({.a = a.in(), .b = b.in(), .c = c.out()}));
}

namespace {

/// Returns 2^-8 + (1 + 2^-8) for each of 8 x N values in bf16: a product and a bias.
/// The library reads a bias of bf16, which is 1, and rounds the sum to 1. Kernels of
/// this program round once, to 1 + 2^-7.
std::vector<float> sum_with_bias(std::int64_t N, stream& on) {
  constexpr std::int64_t M = 8, K = 8;
  const auto count = static_cast<std::size_t>(N);
  const stored_array a{
    "a", std::vector<float>(M * K, 0x1p-8F), {M, K}, precision::bf16},
    b{"b", std::vector<float>(K * count, 0x1p-3F), {K, N}, precision::bf16},
    c{"c", {M, N}, precision::bf16};
  const gpu::array<float> bias{"bias", std::vector<float>(count, 1 + 0x1p-8F)};
  matmul<float>(a.in(), b.in(), 0, c.out(), on,
                {.kind = epilogue_kind::bias, .bias = bias.data()});
  on.wait();
  return c.values();
}

} // namespace

TEST_CASE("TROUPE_EPILOGUES=off leaves epilogues to kernels", "[cuda]") {
  GPU_OR_SKIP();
  setenv("TROUPE_EPILOGUES", "off", 1);
  auto on = stream_on(processor{.gpu = 0}, 1, precision::bf16);
  unsetenv("TROUPE_EPILOGUES");
  CHECK(cuda::libraries_of(0).epilogues == "TROUPE_EPILOGUES says off");
  CHECK(sum_with_bias(16, on) == std::vector<float>(8 * 16, 1 + 0x1p-7F));
}

TEST_CASE("the library finishes products whose rows are whole packs of 16 bytes",
          "[cuda]") {
  GPU_OR_SKIP();
  auto by_library = gpu_stream(precision::bf16, true);
  CHECK(sum_with_bias(16, by_library) == std::vector<float>(8 * 16, 1));
  CHECK(sum_with_bias(12, by_library) == std::vector<float>(8 * 12, 1 + 0x1p-7F));
}

TEST_CASE("a GPU's products in tf32 are near, and exact ones are not rounded",
          "[cuda]") {
  GPU_OR_SKIP();
  constexpr std::int64_t M = 16, N = 24, K = 40;
  const auto a = random_values<float>(M * K, 1), b = random_values<float>(K * N, 2);
  const gpu::array<float> ga{"a", a}, gb{"b", b};
  stream on{1, precision::fp32, std::make_shared<cuda::stream>(0, true)};
  const auto product = [&](bool exact) {
    const gpu::array<float> c{"c", M * N};
    if (exact)
      exact_matmul<float>(dense(ga.data(), M, K), dense(gb.data(), K, N), 0,
                          dense(c.data(), M, N), on);
    else
      matmul<float>(dense(ga.data(), M, K), dense(gb.data(), K, N), 0,
                    dense(c.data(), M, N), on);
    on.wait();
    return c.values();
  };
  const auto ad = gpu::exact(a), bd = gpu::exact(b);
  std::vector<double> c(M * N);
  stream cpu;
  matmul<double>(dense(ad.data(), M, K), dense(bd.data(), K, N), 0,
                 dense(c.data(), M, N), cpu);
  CHECK(relative_difference(product(false), c) < 1e-3);
  CHECK(relative_difference(product(false), c) > 1e-5);
  CHECK(relative_difference(product(true), c) < gpu::near_fp32);
}

TEST_CASE("a GPU rounds the weights of a version once", "[cuda]") {
  GPU_OR_SKIP();
  constexpr std::int64_t M = 8, N = 16, K = 24;
  const auto a = gpu::rounded(random_values<float>(M * K, 1), precision::bf16),
             first = random_values<float>(K * N, 2),
             second = random_values<float>(K * N, 3);
  const stored_array ga{"a", a, {M, K}, precision::bf16},
    old_b{"old b", first, {K, N}, precision::fp32},
    new_b{"new b", second, {K, N}, precision::fp32};
  const gpu::array<float> room{"room", kept_size(K, N)};
  int holds = -1;
  auto on = gpu_stream(precision::bf16);
  const auto product_with = [&](const stored_array& b, int version) {
    const stored_array c{"c", {M, N}, precision::fp32};
    matmul<float>(ga.in(), kept_right_side<float>{b.in(), version, room.data(), &holds},
                  0, c.out(), on);
    on.gpu()->wait();
    return c.values();
  };
  const auto with = [&](const std::vector<float>& b) {
    const auto ad = gpu::exact(a), bd = gpu::exact(gpu::rounded(b, precision::bf16));
    std::vector<double> c(M * N);
    stream cpu;
    matmul<double>(dense(ad.data(), M, K), dense(bd.data(), K, N), 0,
                   dense(c.data(), M, N), cpu);
    return c;
  };
  CHECK(relative_difference(product_with(old_b, 0), with(first)) < gpu::near_fp32);
  CHECK(holds == 0);
  // The weights of a packed version are not read again.
  CHECK(relative_difference(product_with(new_b, 0), with(first)) < gpu::near_fp32);
  CHECK(relative_difference(product_with(new_b, 1), with(second)) < gpu::near_fp32);
  CHECK(holds == 1);
}

} // namespace troupe::products_test
