// SPDX-License-Identifier: BSD-3-Clause
// BF16 in files of weights: bytes and values that are written down by hand.

#include "models/safetensors.hpp"
#include "models/weights.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

namespace troupe::bf16_files_test {

using Catch::Matchers::ContainsSubstring;

namespace {

std::string little_endian(std::uint64_t value, int bytes) {
  std::string result;
  for (int i = 0; i < bytes; ++i)
    result += static_cast<char>(value >> (8 * i) & 0xff);
  return result;
}

std::string bytes_of(const std::vector<std::uint16_t>& all) {
  std::string result;
  for (const auto bits : all)
    result += little_endian(bits, 2);
  return result;
}

/// A perceptron of 784 inputs: ten biases of a type, then the weights, in F32 and all
/// equal to 2.
std::filesystem::path with_biases(const temporary_folder& folder,
                                  const std::string& biases,
                                  const std::string& type = "BF16") {
  const auto end = std::to_string(biases.size()),
             last = std::to_string(biases.size() + 4 * 7840);
  const auto header = R"({"fc1.bias":{"dtype":")" + type
                      + R"(","shape":[10],"data_offsets":[0,)" + end
                      + R"(]},"fc1.weight":{"dtype":"F32","shape":[10,784],)"
                      + R"("data_offsets":[)" + end + "," + last + "]}}";
  std::string weights;
  for (int i = 0; i < 7840; ++i)
    weights += little_endian(0x40000000, 4);
  return folder.write("w.safetensors",
                      little_endian(header.size(), 8) + header + biases + weights);
}

const auto perceptron = [] { return *make_network<float>({"mlp", 1}); };

std::string refusal_of(const std::filesystem::path& path) {
  const auto read = weights_from(path, perceptron());
  return read ? "" : read.error();
}

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// The bytes behind a file's header.
std::string data_of(const std::filesystem::path& path) {
  const auto content = content_of(path);
  std::uint64_t length = 0;
  std::memcpy(&length, content.data(), sizeof length);
  return content.substr(sizeof length + length);
}

} // namespace

TEST_CASE("BF16 tensors load beside F32, to the very value", "[safetensors]") {
  temporary_folder folder;
  const auto path =
    with_biases(folder, bytes_of({0x3f80, 0xc000, 0x0000, 0x8000, 0x3eab, 0x0001,
                                  0x7f7f, 0xbf01, 0x4049, 0x0080}));
  const std::vector<double> expected{1,
                                     -2,
                                     0,
                                     -0.0,
                                     0.333984375,
                                     std::ldexp(1, -133),
                                     std::ldexp(255, 120),
                                     -0.50390625,
                                     3.140625,
                                     std::ldexp(1, -126)};
  const auto whole = perceptron();
  const auto weights = weights_from(path, whole);
  REQUIRE(weights);
  std::vector<float> bucket(static_cast<std::size_t>(whole.layers[0]->bucket()));
  (*weights)(0, bucket.data());
  const auto& bias = whole.layers[0]->parameter_called("fc1.bias");
  const auto& weight = whole.layers[0]->parameter_called("fc1.weight");
  for (std::size_t i = 0; i < 10; ++i)
    CHECK(bits_of(bucket[static_cast<std::size_t>(bias.offset) + i])
          == bits_of(static_cast<float>(expected[i])));
  for (std::size_t i = 0; i < 7840; ++i)
    REQUIRE(bucket[static_cast<std::size_t>(weight.offset) + i] == 2);
  const auto file = safetensors_file::open(path);
  REQUIRE(file);
  CHECK(file->find("fc1.bias")->values() == 10);
  std::vector<float> some(3);
  file->read(*file->find("fc1.bias"), 6, some);
  CHECK(some == std::vector{static_cast<float>(expected[6]), -0.50390625F, 3.140625F});
}

TEST_CASE("BF16 tensors of the wrong length, and not finite ones, are refused",
          "[safetensors]") {
  temporary_folder folder;
  const std::vector<std::uint16_t> ones(9, 0x3f80);
  CHECK_THAT(refusal_of(with_biases(folder, bytes_of(ones))),
             ContainsSubstring("'fc1.bias' has 18 bytes where its shape needs 20"));
  CHECK_THAT(refusal_of(with_biases(folder, std::string(40, '\0'))),
             ContainsSubstring("'fc1.bias' has 40 bytes where its shape needs 20"));
  CHECK_THAT(refusal_of(with_biases(folder, std::string(19, '\0'))),
             ContainsSubstring("'fc1.bias' has 19 bytes where its shape needs 20"));
  CHECK_THAT(refusal_of(with_biases(folder, std::string(10, '\0'), "F8_E8M0")),
             ContainsSubstring("'fc1.bias' is F8_E8M0; readable types are F64, F32, "
                               "F16, BF16, F8_E5M2 and F8_E4M3"));
  const auto [bits, text] =
    GENERATE(std::pair{0x7f80, "inf"}, std::pair{0xff80, "-inf"},
             std::pair{0x7fc1, "nan"}, std::pair{0x7f81, "nan"});
  auto all = ones;
  all.push_back(static_cast<std::uint16_t>(bits));
  CHECK_THAT(refusal_of(with_biases(folder, bytes_of(all))),
             ContainsSubstring(std::string{"fc1.bias[9] is "} + text));
}

TEST_CASE("saving as BF16 rounds to the nearest, ties to even, and keeps NaN",
          "[safetensors]") {
  temporary_folder folder;
  const auto path = folder.path() / "w.safetensors";
  const auto largest = std::numeric_limits<float>::max();
  const std::vector<std::pair<float, std::uint16_t>> table{
    {1, 0x3f80},
    {1.00390625F, 0x3f80},                       // between 1 and 1 + 2^-7: to even
    {1.01171875F, 0x3f82},                       // between 1 + 2^-7 and 1 + 2^-6
    {std::nextafter(1.00390625F, 2.0F), 0x3f81}, // above the middle
    {std::nextafter(1.01171875F, 1.0F), 0x3f81}, // below the middle
    {-1.01171875F, 0xbf82},
    {-0.0F, 0x8000},
    {1.998F, 0x4000},     // the mantissa carries into the exponent
    {-0x1p-127F, 0x8000}, // no normal fp32: 0 of the same sign
    {largest, 0x7f80},
    {std::numeric_limits<float>::infinity(), 0x7f80},
    {std::bit_cast<float>(0x7f800001U), 0x7fc0}, // NaN by its last bit alone
    {std::bit_cast<float>(0xffc12345U), 0xffc1}};
  std::vector<float> values;
  std::vector<std::uint16_t> expected;
  for (const auto& [value, bits] : table) {
    values.push_back(value);
    expected.push_back(bits);
  }
  const float exact = 1.00390625F;
  const auto count = std::ssize(values);
  const std::vector<tensor_to_store> both{
    {"a", {1, count}, values.data(), precision::bf16}, {"b", {}, &exact}};
  REQUIRE(write_safetensors(path, both).empty());
  const auto data = data_of(path);
  REQUIRE(data.size() == 2 * expected.size() + 4);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK((data.substr(2 * i, 2) == little_endian(expected[i], 2)));
  }
  CHECK((data.substr(2 * expected.size()) == little_endian(0x3f808000, 4)));
  const auto file = safetensors_file::open(path);
  REQUIRE(file);
  CHECK(file->find("a")->type == "BF16");
  CHECK(file->find("a")->dims == std::vector<std::int64_t>{1, 13});
  CHECK(file->find("b")->type == "F32");
}

TEST_CASE("a network saved as BF16 is its nearest values", "[weights]") {
  temporary_folder folder;
  const auto path = folder.path() / "w.safetensors";
  const auto whole = *make_network<float>({"gpt", 2, 6, 2, 3, 5, {}, true});
  std::vector<std::vector<float>> values, read;
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    for (auto* all : {&values, &read})
      all->emplace_back(static_cast<std::size_t>(whole.layers[l]->bucket()));
    initial_weights(whole, 7)(l, values[l].data());
  }
  REQUIRE(save_weights(path, whole, readable(values), {}, precision::bf16).empty());
  const auto weights = weights_from(path, whole);
  REQUIRE(weights);
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    (*weights)(l, read[l].data());
    for (const auto& p : whole.layers[l]->parameters())
      for (auto i = p.offset; i < p.offset + p.values(); ++i) {
        const float value = values[l][static_cast<std::size_t>(i)],
                    got = read[l][static_cast<std::size_t>(i)];
        CHECK((bits_of(got) & 0xffffU) == 0);
        CHECK(std::abs(got - value) <= std::abs(value) / 256);
      }
  }
  values[1][0] = std::numeric_limits<float>::max();
  const auto before = content_of(path);
  CHECK_THAT(save_weights(path, whole, readable(values), {}, precision::bf16),
             ContainsSubstring("transformer.h.0.ln_1.weight[0] is 340282")
               && ContainsSubstring("more than bf16 holds: save weights as fp32"));
  CHECK((content_of(path) == before));
  CHECK(save_weights(path, whole, readable(values)).empty());
}

} // namespace troupe::bf16_files_test
