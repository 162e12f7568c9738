// SPDX-License-Identifier: BSD-3-Clause
// A GPU's computations of rows, compared with the CPU's in double.

#include "kernels/cuda/kernels.hpp"
#include "kernels/layer_norm.hpp"
#include "tests/kernels/cuda/judge.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace troupe::rowwise_test {

using gpu::stored_array;

TEST_CASE("a GPU's layer norm is the CPU's", "[cuda]") {
  GPU_OR_SKIP();
  const auto stored = GENERATE(precision::fp32, precision::bf16);
  const auto [R, C, gap] =
    GENERATE(table<std::int64_t, std::int64_t, std::int64_t>({{1, 1, 0},
                                                              {3, 7, 2},
                                                              {6, 64, 8},
                                                              {9, 104, 0},
                                                              {37, 33, 1},
                                                              {4, 768, 0},
                                                              {2, 1288, 0},
                                                              {3, 131, 0},
                                                              {150, 3, 0},
                                                              {1100, 8, 0},
                                                              {600, 136, 0},
                                                              {2200, 9, 0}}));
  CAPTURE(R, C, gap, stored == precision::bf16);
  const stored_array::size dims{R, C, gap};
  const auto x = gpu::rounded(random_values<float>(R * C, 1), stored),
             dy = gpu::rounded(random_values<float>(R * C, 2), stored),
             residual = gpu::rounded(random_values<float>(R * C, 3), stored),
             gain = random_values<float>(C, 4), offset = random_values<float>(C, 5),
             sum_before = random_values<float>(C, 6);
  const bool adds = GENERATE(false, true);

  const auto made = gpu::in_every_order([&, R = R, C = C] {
    const stored_array gx{"x", x, dims, stored}, gdy{"dy", dy, dims, stored},
      gresidual{"dresidual", residual, dims, stored}, y{"y", dims, stored},
      dx{"dx", dims, stored};
    const gpu::array<float> ggain{"gain", gain}, gbias{"bias", offset}, mean{"mean", R},
      rstd{"rstd", R};
    const gpu::array<float> space{"space", cuda::column_sums::space(R, C, 2)};
    const auto dgain = gpu::sum_of("dgain", sum_before, adds),
               dbias = gpu::sum_of("dbias", sum_before, adds);
    cuda::layer_norm::forward(gx.in(), ggain.data(), gbias.data(), y.out(), mean.data(),
                              rstd.data(), nullptr);
    cuda::layer_norm::input_gradient(gx.in(), ggain.data(), mean.data(), rstd.data(),
                                     gdy.in(), adds ? gresidual.in() : cuda::input{},
                                     dx.out(), nullptr);
    cuda::layer_norm::weight_gradient(gx.in(), mean.data(), rstd.data(), gdy.in(),
                                      adds ? 1.0F : 0.0F, dgain->data(), dbias->data(),
                                      space.data(), nullptr);
    gpu::wait();
    return gpu::results{y.values(),  mean.values(),   rstd.values(),
                        dx.values(), dgain->values(), dbias->values()};
  });

  const auto xd = gpu::exact(x), gaind = gpu::exact(gain), biasd = gpu::exact(offset),
             dyd = gpu::exact(dy), residuald = gpu::exact(residual);
  std::vector<double> y(xd.size()), mean(static_cast<std::size_t>(R)), rstd = mean,
                                                                       dx = y;
  auto dgain = gpu::exact(sum_before), dbias = dgain;
  stream on;
  using norm = layer_norm<double>;
  norm::forward(dense(xd.data(), R, C), gaind.data(), biasd.data(),
                dense(y.data(), R, C), mean.data(), rstd.data(), on);
  norm::input_gradient(dense(xd.data(), R, C), gaind.data(), mean.data(), rstd.data(),
                       dense(dyd.data(), R, C),
                       adds ? stored_matrix<const double>{dense(residuald.data(), R, C)}
                            : stored_matrix<const double>{},
                       dense(dx.data(), R, C), on);
  norm::weight_gradient(dense(xd.data(), R, C), mean.data(), rstd.data(),
                        dense(dyd.data(), R, C), adds ? 1 : 0, dgain.data(),
                        dbias.data(), on);
  CHECK(relative_difference(made[0], y) < gpu::near(stored));
  CHECK(relative_difference(made[1], mean) < gpu::near_fp32);
  CHECK(relative_difference(made[2], rstd) < gpu::near_fp32);
  CHECK(relative_difference(made[3], dx) < gpu::near(stored));
  CHECK(relative_difference(made[4], dgain) < gpu::near_fp32);
  CHECK(relative_difference(made[5], dbias) < gpu::near_fp32);
}

} // namespace troupe::rowwise_test
