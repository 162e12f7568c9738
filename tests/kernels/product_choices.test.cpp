// SPDX-License-Identifier: BSD-3-Clause
// Tests the table of algorithms for products of GPUs: CSV, keys, and the choice.

#include "kernels/cuda/product_choices.hpp"

#include <catch2/catch_test_macros.hpp>

#include <limits>

namespace troupe::product_choices_test {

using cuda::operand_kind;

namespace {

const std::string header =
  "gpu,cublaslt,m,k,n,a_transposed,b_transposed,operands,result,epilogue,adds,"
  "algorithm,microseconds,first_microseconds\n";

const std::string logits = "NVIDIA H200,130100,8192,768,50304,0,1,bf16,fp32,none,0,5,"
                           "889.7,1039.7\n";
const std::string fc = "NVIDIA H200,130100,4096,1024,4096,0,0,bf16,bf16,bias_gelu,0,4,"
                       "68.4,70.1\n";

std::string error_of(const std::string& csv) {
  const auto parsed = cuda::parse_choices(csv);
  return parsed ? "" : parsed.error();
}

/// The error of a table whose second row has other cells from the column on.
std::string error_of_row(std::string row, const std::string& from,
                         const std::string& to) {
  row.replace(row.find(from), from.size(), to);
  return error_of(header + fc + row);
}

} // namespace

TEST_CASE("a table of algorithms is read from CSV", "[choices]") {
  const auto parsed = cuda::parse_choices(header + logits + "\n" + fc);
  REQUIRE(parsed);
  REQUIRE(parsed->rows.size() == 2);
  const auto of_logits = parsed->rows.find({.gpu = "NVIDIA H200",
                                            .cublaslt = 130100,
                                            .m = 8192,
                                            .k = 768,
                                            .n = 50304,
                                            .b_transposed = true,
                                            .operands = operand_kind::bf16});
  REQUIRE(of_logits != parsed->rows.end());
  CHECK(of_logits->second == cuda::product_choice{5, 889.7, 1039.7});
  const auto of_fc = parsed->rows.find({.gpu = "NVIDIA H200",
                                        .cublaslt = 130100,
                                        .m = 4096,
                                        .k = 1024,
                                        .n = 4096,
                                        .operands = operand_kind::bf16,
                                        .result_is_bf16 = true,
                                        .epilogue = epilogue_kind::bias_gelu});
  REQUIRE(of_fc != parsed->rows.end());
  CHECK(of_fc->second.algorithm == 4);
}

TEST_CASE("a table of algorithms is written as it is read, in one order", "[choices]") {
  const auto text = header + fc + logits;
  CHECK(cuda::to_csv(cuda::parse_choices(header + logits + fc).value()) == text);
  CHECK(cuda::to_csv(cuda::parse_choices(text).value()) == text);
  CHECK(cuda::to_csv({}) == header);
  auto with_returns = header + fc;
  with_returns.insert(header.size() - 1, "\r");
  with_returns.insert(with_returns.size() - 1, "\r");
  CHECK(cuda::to_csv(cuda::parse_choices(with_returns).value()) == header + fc);
}

TEST_CASE("a wrong line of a table is named, with the allowed values", "[choices]") {
  CHECK(error_of("").starts_with("line 1 is not the header of a table of products"));
  CHECK(error_of(fc).starts_with("line 1 is not the header"));
  CHECK(error_of_row(logits, "NVIDIA H200", "") == "line 3: gpu is empty");
  CHECK(error_of_row(logits, "130100", "13.1")
        == "line 3: cublaslt is '13.1': write a whole number from 1 on");
  CHECK(error_of_row(logits, ",8192", ",0")
        == "line 3: m is '0': write a whole number from 1 on");
  CHECK(error_of_row(logits, ",0,1,bf16", ",0,2,bf16")
        == "line 3: b_transposed is '2': write a whole number from 0 to 1");
  CHECK(error_of_row(logits, "bf16", "fp8")
        == "line 3: operands is 'fp8': there are fp32, tf32, bf16");
  CHECK(error_of_row(logits, "fp32", "tf32")
        == "line 3: result is 'tf32': there are fp32, bf16");
  CHECK(error_of_row(logits, "none", "bias_relu") // no epilogue of cuBLASLt's
        == "line 3: epilogue is 'bias_relu': there are none, bias, bias_gelu, "
           "bias_residual, gelu_gradient");
  CHECK(error_of_row(logits, ",5,", ",8,")
        == "line 3: algorithm is '8': write a whole number from 0 to 7");
  CHECK(error_of_row(logits, "889.7", "inf")
        == "line 3: microseconds is 'inf': write a number of microseconds above 0");
  CHECK(error_of_row(logits, ",889.7", "")
        == "line 3: there are fewer cells than the header has");
  CHECK(error_of_row(logits, "889.7", "889.7,1")
        == "line 3: there are more cells than the header has");
  CHECK(error_of(header + fc + fc)
        == "line 3: an earlier line has the same product: leave either line out");
}

TEST_CASE("a key has what a product's algorithm depends on", "[choices]") {
  alignas(16) static char memory[64];
  auto* const floats = reinterpret_cast<float*>(memory);
  auto* const rounded = reinterpret_cast<bf16*>(memory);
  // c (5, 4) += a (5, 3) b (3, 4), with a and b stored as their transposes
  cuda::library_product product{.a = dense(rounded, 3, 5).t(),
                                .b = dense(rounded, 4, 3).t(),
                                .beta = 1,
                                .c = dense(floats, 5, 4),
                                .tf32 = true};
  const cuda::product_key expected{.gpu = "GPU  one",
                                   .cublaslt = 7,
                                   .m = 5,
                                   .k = 3,
                                   .n = 4,
                                   .a_transposed = true,
                                   .b_transposed = true,
                                   .operands = operand_kind::bf16,
                                   .adds = true};
  CHECK(cuda::key_of(product, "GPU, one", 7) == expected);
  product.a = dense(floats, 5, 3);
  product.b = dense(floats, 3, 4);
  const auto plain = cuda::key_of(product, "GPU", 7).value();
  CHECK(plain.operands == operand_kind::tf32);
  CHECK(plain.m == 5);
  CHECK(plain.k == 3);
  CHECK_FALSE(plain.a_transposed);
  product.tf32 = false;
  CHECK(cuda::key_of(product, "GPU", 7)->operands == operand_kind::fp32);
  product.a = dense(floats + 1, 5, 3); // at 4 bytes
  CHECK_FALSE(cuda::key_of(product, "GPU", 7));
  product.a = matrix<const float>{floats, 5, 3, 4, false}; // with gaps
  CHECK_FALSE(cuda::key_of(product, "GPU", 7));
}

TEST_CASE("an algorithm is chosen if it is clearly faster than the first",
          "[choices]") {
  CHECK(cuda::choice_of({10, 9.9, 12}) == cuda::product_choice{0, 10, 10});
  CHECK(cuda::choice_of({10, 9.5, 9, 12}) == cuda::product_choice{2, 9, 10});
  CHECK(cuda::choice_of({10}) == cuda::product_choice{0, 10, 10});
  const auto impossible = std::numeric_limits<double>::infinity();
  CHECK(cuda::choice_of({10, impossible, 8}) == cuda::product_choice{2, 8, 10});
}

TEST_CASE("the table of this build is read", "[choices]") {
  CHECK(cuda::to_csv(cuda::known_choices()).starts_with(header));
}

} // namespace troupe::product_choices_test
