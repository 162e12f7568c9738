// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/epilogue_check.hpp"

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/memory.hpp"

#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

namespace troupe::cuda {

namespace {

constexpr std::int64_t M = 32, K = 24, N = 16; // c = a b is (M, N)
constexpr double most_epilogue_difference = 1e-2;

/// A matrix of bf16 in memory of its own.
class small_matrix {
public:
  small_matrix(std::int64_t rows, std::int64_t columns, memory_account& account)
    : memory_(rows * columns, account), rows_(rows), columns_(columns) {
    // nop
  }

  matrix<bf16> stored() const {
    return {reinterpret_cast<bf16*>(memory_.data()), rows_, columns_, columns_, false};
  }

  /// Fills the matrix with multiples of 1/32 in [-1, 1], which bf16 holds exactly.
  void fill(int seed) const {
    for (std::int64_t i = 0; i < rows_ * columns_; ++i)
      stored().data[i].bits = bf16_of(static_cast<float>((i * seed) % 65 - 32) / 32);
  }

  float value(std::int64_t i) const { return fp32_of(stored().data[i].bits); }

private:
  tensor_memory memory_; // room for fp32
  std::int64_t rows_, columns_;
};

/// The operands and the results of one epilogue, by the library and by our kernels.
struct trial {
  explicit trial(memory_space& space) : account(space) {
    a.fill(37);
    b.fill(29);
    x.fill(43);
    bias.fill(31);
    for (std::int64_t n = 0; n < N; ++n)
      exact_bias.data()[n] = bias.value(n);
  }

  library_product product(epilogue_kind kind) const {
    library_product result{
      .a = a.stored(), .b = b.stored(), .c = by_library[0].stored(), .end = kind};
    if (has_bias(kind))
      result.bias = bias.stored().data;
    if (reads_x(kind))
      result.x = x.stored();
    if (kind == epilogue_kind::bias_gelu)
      result.y = by_library[1].stored();
    return result;
  }

  void run_ours(epilogue_kind kind, stream& gpu_stream) const {
    const auto fused = product(kind);
    const auto products = dense(sums.data(), M, N);
    gpu_stream.launch_product({.a = fused.a, .b = fused.b, .c = products});
    epilogue<float> end{.kind = kind, .x = fused.x};
    if (has_bias(kind))
      end.bias = exact_bias.data();
    if (kind == epilogue_kind::bias_gelu)
      end.y = ours[1].stored();
    epilogues::finish(products, end, ours[0].stored(), gpu_stream.handle());
  }

  memory_account account;
  small_matrix a{M, K, account}, b{K, N, account}, x{M, N, account},
    bias{1, N, account};
  std::array<small_matrix, 2> by_library{{{M, N, account}, {M, N, account}}},
    ours{{{M, N, account}, {M, N, account}}};
  tensor_memory exact_bias{N, account}, sums{M * N, account};
};

/// The norm of the difference of two (M, N), over the norm of the second.
double distance(const small_matrix& from, const small_matrix& to) {
  double difference = 0, norm = 0;
  for (std::int64_t i = 0; i < M * N; ++i) {
    difference += std::pow(static_cast<double>(from.value(i)) - to.value(i), 2);
    norm += std::pow(static_cast<double>(to.value(i)), 2);
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

} // namespace

namespace {

/// The error of one kind, whose products the stream accepts meanwhile.
std::string error_of(epilogue_kind kind, const trial& tried, stream& gpu_stream) {
  const auto product = tried.product(kind);
  if (!gpu_stream.is_available(product))
    return "has no algorithm";
  try {
    gpu_stream.launch_product(product);
    gpu_stream.wait();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  tried.run_ours(kind, gpu_stream);
  gpu_stream.wait();
  const std::size_t results = kind == epilogue_kind::bias_gelu ? 2 : 1;
  for (std::size_t i = 0; i < results; ++i)
    if (const auto off = distance(tried.by_library[i], tried.ours[i]);
        !(off <= most_epilogue_difference))
      return "differs from this program's kernel by " + std::to_string(off);
  return {};
}

} // namespace

accepted_epilogues compare_epilogues(stream& gpu_stream, memory_space& space) {
  const trial tried{space};
  accepted_epilogues result;
  for (const auto kind :
       {epilogue_kind::none, epilogue_kind::bias, epilogue_kind::bias_gelu,
        epilogue_kind::bias_residual, epilogue_kind::gelu_gradient}) {
    gpu_stream.accept_epilogue(kind, true);
    const auto error = error_of(kind, tried, gpu_stream);
    gpu_stream.accept_epilogue(kind, false);
    if (error.empty())
      result.kinds.push_back(kind);
    else
      result.errors += std::string{result.errors.empty() ? "" : "; "}
                       + "cuBLASLt's epilogue " + name_of(kind)
                       + " is not used: " + error;
  }
  return result;
}

} // namespace troupe::cuda
