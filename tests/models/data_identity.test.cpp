// SPDX-License-Identifier: BSD-3-Clause
// Sizes and sums are those that `wc -c` and `xxhsum -H3` print for the same bytes.

#include "models/data/checked_data.hpp"
#include "models/data/mnist.hpp"
#include "models/data/open_data.hpp"
#include "models/data/synthetic.hpp"
#include "models/data/text.hpp"
#include "models/data/tokens.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>

#include <vector>

namespace troupe::data_identity_test {

namespace {

/// The letters a to w, repeated.
std::string letters(std::size_t size, std::size_t first = 0) {
  std::string result;
  for (std::size_t i = first; i < first + size; ++i)
    result += static_cast<char>('a' + i % 23);
  return result;
}

data_identity text(const std::filesystem::path& path,
                   text_order order = text_order::random) {
  return (*text_data(path, order, 8, 256, 1))->identity().value();
}

data_identity tokens(const std::filesystem::path& path) {
  return (*token_data(path, text_order::random, 8, 50257, 1, 2))->identity().value();
}

/// A file of tokens: llm.c's header, then tokens of 16 bits.
std::string llm_c(const std::vector<unsigned char>& values) {
  std::string result(1024, '\0');
  const auto put = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i)
      result[at + i] = static_cast<char>(value >> (8 * i));
  };
  put(0, 20240520);
  put(4, 1);
  put(8, static_cast<std::uint32_t>(values.size()));
  for (const auto value : values)
    result += {static_cast<char>(value), '\0'};
  return result;
}

/// An IDX file of MNIST's; side 0: a file of labels.
std::string idx(int count, int side) {
  const auto word = [](int v) {
    return std::string{static_cast<char>(v >> 24), static_cast<char>(v >> 16),
                       static_cast<char>(v >> 8), static_cast<char>(v)};
  };
  if (side == 0)
    return word(0x801) + word(count)
           + std::string(static_cast<std::size_t>(count), '\3');
  return word(0x803) + word(count) + word(side) + word(side)
         + std::string(static_cast<std::size_t>(count * side * side), '\7');
}

} // namespace

TEST_CASE("a text's identity is the size and XXH3 of its bytes", "[data][identity]") {
  temporary_folder folder;
  const auto path = folder.write("a.txt", letters(100));
  CHECK(text(path) == data_identity{"text", 100, 0x8d67c40581e4b359});
  CHECK(to_string(text(path)) == "text, 100 bytes, XXH3 8d67c40581e4b359");
  CHECK(text(folder.write("b.txt", letters(100))) == text(path)); // another name
  CHECK(text(folder.write("c.txt", letters(100, 1))) != text(path));
  CHECK(text(path, text_order::sequential)
        == data_identity{"text in order", 100, 0x8d67c40581e4b359});
}

TEST_CASE("a folder's identity is that of its files in order of name",
          "[data][identity]") {
  temporary_folder folder;
  folder.write("b.txt", letters(60, 40));
  folder.write("a.txt", letters(40));
  CHECK(text(folder.path()) == data_identity{"text", 100, 0x8d67c40581e4b359});
  folder.write("a.txt", letters(39) + "!");
  CHECK(text(folder.path()) != data_identity{"text", 100, 0x8d67c40581e4b359});
}

TEST_CASE("tokens are summed with what stands before them", "[data][identity]") {
  temporary_folder folder;
  const auto raw = folder.write("raw.bin", letters(100));
  CHECK(tokens(raw) == data_identity{"tokens of 16 bits", 100, 0x8d67c40581e4b359});
  std::vector<unsigned char> values;
  for (int i = 0; i < 40; ++i)
    values.push_back(static_cast<unsigned char>(i));
  const auto with_header = folder.write("llm_c.bin", llm_c(values));
  CHECK(tokens(with_header)
        == data_identity{"tokens of 16 bits", 1104, 0xb833f20225294ddf});
}

TEST_CASE("many tokens are summed to the last", "[data][identity]") {
  temporary_folder folder;
  const auto content = letters(3'000'000); // over a million tokens: several pieces
  const auto path = folder.write("many.bin", content);
  CHECK(tokens(path).checksum == 0x6682031093df8c4b);
  auto other = content;
  other.back() = 'Z';
  CHECK(tokens(folder.write("other.bin", other)).checksum != 0x6682031093df8c4b);
}

TEST_CASE("MNIST's identity is that of its unpacked files", "[data][identity]") {
  temporary_folder folder;
  folder.write("t10k-images-idx3-ubyte", idx(20, 28));
  folder.write("t10k-labels-idx1-ubyte", idx(20, 0));
  const auto small = (*mnist_data(folder.path(), 1, true))->identity().value();
  CHECK(small.bytes == 15'724);
  CHECK(small.checksum == 0x79d0198107f216eb);
  folder.write("train-images-idx3-ubyte", idx(30, 28));
  folder.write("train-labels-idx1-ubyte", idx(30, 0));
  const auto whole = (*mnist_data(folder.path(), 1))->identity().value();
  CHECK(whole.bytes == 15'724 + 23'574);
  CHECK(whole.checksum == 0xaa661fa99ecf76f0);
}

TEST_CASE("synthetic data is identified by all that defines it", "[data][identity]") {
  const auto identity = [](const auto& data) { return data->identity().value(); };
  const auto one = identity(synthetic_text(16, 50, 1));
  CHECK(one == identity(synthetic_text(16, 50, 1)));
  CHECK(one != identity(synthetic_text(16, 50, 2)));
  CHECK(one != identity(synthetic_text(16, 51, 1)));
  CHECK(one != identity(synthetic_text(17, 50, 1)));
  CHECK(to_string(one) == "synthetic text of seed 1, 16 of 50 words");
  const auto images = identity(synthetic_images(1));
  CHECK(images == identity(synthetic_images(1)));
  CHECK(images != identity(synthetic_images(2)));
}

TEST_CASE("checked samples are those of the data that is checked", "[data][identity]") {
  const auto data = synthetic_images(3);
  CHECK(checked(data, *make_network<float>({"mlp"}))->identity() == data->identity());
}

TEST_CASE("data with data for evaluations is another than without, and than with other",
          "[data][identity]") {
  temporary_folder folder;
  const auto name = [&](const char* file, std::size_t first) {
    return "text:" + folder.write(file, letters(100, first)).string();
  };
  const auto a = name("a", 0), b = name("b", 1), a_again = name("c", 0);
  const model_options gpt{.length = 8};
  const auto identity = [&](const std::string& training,
                            const std::string& evaluation) {
    return (*open_data_sets(training, evaluation, gpt, 1))->identity().value();
  };
  CHECK(identity(a, a_again).kind == "text as a whole, evaluated on text as a whole");
  CHECK(identity(a, a_again).bytes == 200);
  CHECK(identity(a, b) == identity(a_again, b));
  CHECK(identity(a, b) != identity(b, a));
  CHECK(identity(a, b) != identity(a, a));
  CHECK(identity(a, b) != (*open_data(a, gpt, 1))->identity());
  CHECK(identity(a, "synthetic") != identity(b, "synthetic"));
  CHECK(identity("synthetic", a) != identity(a, "synthetic"));
}

} // namespace troupe::data_identity_test
