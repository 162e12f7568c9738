// SPDX-License-Identifier: BSD-3-Clause
// Token files, byte for byte as nanoGPT and llm.c write such files.

#include "models/data/tokens.hpp"

#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

namespace troupe::tokens_test {

using Catch::Matchers::ContainsSubstring;

namespace {

/// A number in little-endian bytes.
std::string bytes_of(std::uint64_t value, int width) {
  std::string result;
  for (int i = 0; i < width; ++i)
    result += static_cast<char>(value >> (8 * i));
  return result;
}

/// The bytes that numpy writes of a uint16 or uint32 array.
std::string raw(const std::vector<std::uint32_t>& tokens, int width = 2) {
  std::string result;
  for (const auto token : tokens)
    result += bytes_of(token, width);
  return result;
}

/// The header of llm.c: 256 int32.
std::string header(std::uint32_t magic, std::uint32_t version, std::uint32_t count) {
  return bytes_of(magic, 4) + bytes_of(version, 4) + bytes_of(count, 4)
         + std::string(253 * 4, '\0');
}

std::vector<std::uint32_t> some_tokens(std::size_t count) {
  std::vector<std::uint32_t> result;
  for (std::size_t i = 0; i < count; ++i)
    result.push_back(static_cast<std::uint32_t>(i * 7919 % 50257));
  return result;
}

struct sample {
  std::vector<std::int32_t> tokens = std::vector<std::int32_t>(8), labels = tokens;

  sample_view view() { return {.tokens = tokens.data(), .labels = labels.data()}; }
};

sample of(const data_set& data, std::int64_t index, bool evaluation = false) {
  sample result;
  if (evaluation)
    data.evaluation(index, result.view());
  else
    data.training(index, result.view());
  return result;
}

auto opened(const std::filesystem::path& path, text_order order, std::int64_t words) {
  return token_data(path, order, 8, words, 1);
}

std::string refusal(const std::string& content, std::int64_t words = 50257) {
  temporary_folder folder;
  const auto data = opened(folder.write("t.bin", content), text_order::random, words);
  return data ? "" : data.error();
}

/// Bytes of the process that are in physical memory.
std::int64_t resident() {
  std::ifstream file{"/proc/self/statm"};
  std::int64_t all = 0, pages = 0;
  file >> all >> pages;
  return pages * 4096;
}

} // namespace

TEST_CASE("tokens are read as nanoGPT and llm.c write them", "[tokens]") {
  temporary_folder folder;
  auto tokens = some_tokens(101);
  const bool wide = GENERATE(false, true);
  if (wide)
    tokens[3] = 128'255; // the last token of Llama 3
  const auto count = static_cast<std::uint32_t>(tokens.size());
  const auto path = folder.write(
    "t.bin", wide
               ? header(20240801, 7, count) + raw(tokens, 4)
               : GENERATE_COPY(raw(tokens), header(20240520, 1, count) + raw(tokens)));
  const auto words = wide ? 128'256 : 50'257;
  const auto in_order = *opened(path, text_order::sequential, words);
  for (const std::int64_t k : {0, 1, 11, 12, 13, 1000}) {
    const auto got = of(*in_order, k);
    for (std::size_t t = 0; t < 8; ++t) {
      const auto at = static_cast<std::size_t>(k) * 8 + t;
      CHECK(got.tokens[t] == static_cast<std::int32_t>(tokens[at % 101]));
      CHECK(got.labels[t] == static_cast<std::int32_t>(tokens[(at + 1) % 101]));
    }
  }
  CHECK(in_order->evaluates_training_data());
  CHECK(in_order->epoch() == 12);
  CHECK_THAT(in_order->description(), ContainsSubstring("t.bin, 101 tokens, in order"));
  const auto at_random = *opened(path, text_order::random, words);
  CHECK_FALSE(at_random->evaluates_training_data());
  CHECK(at_random->epoch() == 11);          // of tokens 0 to 90
  CHECK(at_random->evaluation_size() == 1); // of tokens 91 to 100
  // Of two sequences of 5 tokens, the second has no label for the last token.
  CHECK((*token_data(path, text_order::random, 5, words, 1))->evaluation_size() == 1);
  CHECK(of(*at_random, 0, true).tokens[0] == static_cast<std::int32_t>(tokens[91]));
  const std::set<std::int32_t> held_out(tokens.begin() + 91, tokens.end());
  for (int k = 0; k < 100; ++k)
    for (const auto label : of(*at_random, k).labels)
      CHECK_FALSE(held_out.contains(label));
}

TEST_CASE("numbers of 32 bits without a header are tokens where that is said",
          "[tokens]") {
  temporary_folder folder;
  auto tokens = some_tokens(101);
  tokens[3] = GENERATE(128'255, 50'256); // two bytes hold the second number
  const auto path = folder.write("t.bin", raw(tokens, 4));
  const auto opened_as = [&](std::int64_t width) {
    return token_data(path, text_order::sequential, 8, 128'256, 1, width);
  };
  CHECK_THAT(opened_as(0).error(),
             ContainsSubstring("looks like numbers of 32 bits: say")
               && ContainsSubstring("width=32"));
  const auto data = *opened_as(4);
  CHECK_THAT(data->description(), ContainsSubstring("101 tokens"));
  for (std::size_t t = 0; t < 8; ++t)
    CHECK(of(*data, 0).tokens[t] == static_cast<std::int32_t>(tokens[t]));
  CHECK_THAT((*opened_as(2))->description(), ContainsSubstring("202 tokens"));
  std::filesystem::resize_file(path, 402);
  CHECK_THAT(opened_as(4).error(), ContainsSubstring("402 bytes, no multiple of 4"));
}

TEST_CASE("numbers of 64 bits are no tokens", "[tokens]") {
  temporary_folder folder;
  const auto path = folder.write("t.bin", raw(some_tokens(100), 8));
  const auto refusal_of = [&](std::int64_t width) {
    return token_data(path, text_order::random, 8, 50257, 1, width).error();
  };
  CHECK_THAT(refusal_of(0), ContainsSubstring("looks like numbers of 32 bits"));
  CHECK_THAT(refusal_of(4), ContainsSubstring("looks like numbers of 64 bits"));
}

TEST_CASE("small vocabularies do not look like wider numbers", "[tokens]") {
  for (const std::uint32_t words : {2U, 3U, 16U, 65U}) {
    std::vector<std::uint32_t> tokens;
    for (std::uint32_t i = 0; i < 400; ++i)
      tokens.push_back(i * i / 3 % words);
    CHECK(refusal(raw(tokens), 65).empty());
  }
  CHECK(refusal(std::string(400, '\0')).empty());
}

TEST_CASE("a width that contradicts a header is refused", "[tokens]") {
  temporary_folder folder;
  const auto path =
    folder.write("t.bin", header(20240520, 1, 100) + raw(some_tokens(100)));
  CHECK(token_data(path, text_order::random, 8, 50257, 1, 2));
  CHECK_THAT(token_data(path, text_order::random, 8, 50257, 1, 4).error(),
             ContainsSubstring("tokens of 16 bits: leave width= out"));
  const auto wide =
    folder.write("w.bin", header(20240801, 7, 100) + raw(some_tokens(100), 4));
  CHECK_THAT(token_data(wide, text_order::random, 8, 50257, 1, 2).error(),
             ContainsSubstring("tokens of 32 bits: leave width= out"));
}

TEST_CASE("files of other formats are no tokens, and are named", "[tokens]") {
  const auto more = raw(some_tokens(1000));
  for (const auto& [begin, name] :
       {std::pair<std::string, std::string>{{"\x93NUMPY\x01\0", 8}, "a numpy file"},
        {"\x1f\x8b\x08", "a gzip file"},
        {"PK\x03\x04", "a zip file"},
        {"\x28\xb5\x2f\xfd", "a zstd file"},
        {"PAR1", "a Parquet file"},
        {"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"}})
    CHECK_THAT(refusal(begin + more), ContainsSubstring("t.bin is " + name));
  const auto data =
    token_data(TROUPE_GOLDEN "/reports/tokens-u16.npy", text_order::random, 8, 37, 1);
  CHECK_THAT(data.error(), ContainsSubstring("is a numpy file"));
}

TEST_CASE("a text is no tokens unless its user says so", "[tokens]") {
  const std::string text(400, 'e');
  CHECK_THAT(refusal("Emma Woodhouse,\n" + text),
             ContainsSubstring("looks like a text: say text: in place of tokens:"));
  std::string cyrillic; // byte 512 is within a character, or between two
  for (int i = 0; i < 300; ++i)
    cyrillic += "\xd0\x96";
  for (const auto* const before : {"", "-", "--", "---"})
    CHECK_THAT(refusal(before + cyrillic), ContainsSubstring("looks like a text"));
  temporary_folder folder;
  const auto path = folder.write("t.bin", text);
  CHECK(token_data(path, text_order::random, 8, 50257, 1, 2));
  CHECK_THAT(refusal(std::string{"\x01\x34\xd8\x88", 4} + raw(some_tokens(1000))),
             ContainsSubstring("big-endian"));
}

TEST_CASE("a token beyond the vocabulary is refused with its position", "[tokens]") {
  auto tokens =
    some_tokens(3'000'000); // more than the pieces in which tokens are checked
  const std::size_t at = GENERATE(0, 1, 1'048'575, 1'048'576, 2'999'999);
  const bool with_header = at % 2 == 0;
  tokens[at] = 50257;
  const auto head = header(20240520, 1, static_cast<std::uint32_t>(tokens.size()));
  CHECK_THAT(refusal((with_header ? head : "") + raw(tokens)),
             ContainsSubstring("holds token 50257 at position " + std::to_string(at)
                               + "; with --vocab 50257 words are 0 to 50256"));
}

TEST_CASE("a token file that is written again while it is read is refused",
          "[tokens]") {
  temporary_folder folder;
  const auto path = folder.write("t.bin", raw(some_tokens(100)));
  const auto data = *opened(path, text_order::sequential, 50257);
  auto later = some_tokens(100);
  later[25] = 50257;
  {
    std::ofstream file{path, std::ios::binary | std::ios::in | std::ios::out};
    file << raw(later);
  }
  CHECK(of(*data, 1).tokens[0] == static_cast<std::int32_t>(later[8]));
  CHECK_THROWS_WITH(
    of(*data, 3),
    "t.bin was changed during the run, and holds token 50257 at position 25");
  std::filesystem::resize_file(path, 0);
  CHECK_THROWS_WITH(of(*data, 1), ContainsSubstring("it became shorter"));
}

TEST_CASE("token files that are damaged are refused with one sentence", "[tokens]") {
  const auto tokens = raw(some_tokens(100));
  CHECK(refusal(tokens).empty());
  CHECK_THAT(refusal(""), ContainsSubstring("has 0 tokens; nine tenths of a text"));
  CHECK_THAT(refusal("x"), ContainsSubstring("has 1 bytes, an odd number"));
  CHECK_THAT(refusal(tokens.substr(0, 16)), ContainsSubstring("has 8 tokens"));
  CHECK_THAT(refusal(tokens + "x"), ContainsSubstring("has 201 bytes, an odd number"));
  const auto head = header(20240520, 1, 100);
  CHECK(refusal(head + tokens).empty());
  CHECK_THAT(refusal(head.substr(0, 1000)),
             ContainsSubstring("ends within its header"));
  CHECK_THAT(refusal(head), ContainsSubstring("has 0 bytes after its header, which "
                                              "announces 100 tokens of 2 bytes"));
  for (const auto& other :
       {tokens + "xx", tokens + "x", tokens.substr(2), tokens.substr(1)})
    CHECK_THAT(refusal(head + other), ContainsSubstring("announces 100 tokens"));
  CHECK_THAT(refusal(header(20240520, 1, 0xffffffff) + tokens),
             ContainsSubstring("bytes after its header"));
  CHECK_THAT(refusal(header(20240520, 2, 100) + tokens),
             ContainsSubstring("is of version 2 of llm.c's format"));
  CHECK_THAT(refusal(header(20240801, 1, 50) + tokens),
             ContainsSubstring("is of version 1 of llm.c's format"));
  CHECK_THAT(refusal(header(20240801, 7, 100) + tokens),
             ContainsSubstring("announces 100 tokens of 4 bytes"));
  CHECK_THAT(refusal(header(20240801, 7, 50) + raw(std::vector(50, ~0U), 4)),
             ContainsSubstring("holds token 4294967295 at position 0"));
  temporary_folder folder;
  REQUIRE(mkfifo((folder.path() / "fifo").c_str(), 0600) == 0);
  for (const auto& [path, why] : {std::pair{folder.path() / "none", "No such file"},
                                  {folder.path() / "fifo", "it is a FIFO"}})
    CHECK_THAT(
      opened(path, text_order::random, 100).error(),
      ContainsSubstring("cannot read the tokens " + path.string() + ": " + why));
}

namespace {

std::string read_from(const std::filesystem::path& path, std::int64_t width = 0) {
  const auto data = token_data(path, text_order::random, 8, 50257, 1, width);
  return data ? (*data)->description() : data.error();
}

} // namespace

TEST_CASE("tokens of several files are one text in order of name", "[tokens]") {
  temporary_folder folder;
  const auto tokens = some_tokens(101);
  const auto part = [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    return raw({tokens.begin() + begin, tokens.begin() + end});
  };
  folder.write("train_2.bin", part(73, 101));
  folder.write("train_0.bin", header(20240520, 1, 70) + part(0, 70));
  folder.write("train_1.bin", header(20240520, 1, 3) + part(70, 73)); // inside a window
  folder.write("train_10.bin", "");                                   // between 1 and 2
  folder.write("other.bin", raw(some_tokens(50)));
  const auto path = folder.path() / "train_*.bin";
  const auto in_order = *opened(path, text_order::sequential, 50257);
  CHECK(in_order->description()
        == "train_*.bin (4 files read, train_0.bin to train_2.bin), 101 tokens, in "
           "order");
  for (std::int64_t k = 0; k < 30; ++k) {
    const auto got = of(*in_order, k);
    for (std::size_t t = 0; t < 8; ++t) {
      const auto at = static_cast<std::size_t>(k) * 8 + t;
      CHECK(got.tokens[t] == static_cast<std::int32_t>(tokens[at % 101]));
      CHECK(got.labels[t] == static_cast<std::int32_t>(tokens[(at + 1) % 101]));
    }
  }
  const auto at_random = *opened(path, text_order::random, 50257);
  CHECK(at_random->epoch() == 11);
  CHECK(of(*at_random, 0, true).tokens[0] == static_cast<std::int32_t>(tokens[91]));
  const auto one_file =
    *opened(folder.write("all", raw(tokens)), text_order::random, 50257);
  for (int k = 0; k < 100; ++k)
    CHECK(of(*at_random, k).labels == of(*one_file, k).labels);
}

TEST_CASE("a folder's files without tokens are left out, and no others", "[tokens]") {
  temporary_folder folder;
  folder.write("a.bin", raw(some_tokens(60)));
  folder.write("b.bin", raw(some_tokens(40)));
  folder.write("input.txt", std::string(100, 'x'));
  folder.write("meta.pkl", std::string("\x80\x04\x95\x1a\0\0\0\0\0\0\0}", 12));
  CHECK_THAT(read_from(folder.path()),
             ContainsSubstring("(2 files read, a.bin to b.bin, 2 left out: input.txt, "
                               "meta.pkl), 100 tokens"));
  CHECK_THAT(read_from(folder.path() / "*"),
             ContainsSubstring("input.txt looks like a text"));
  folder.write("c.bin", raw(some_tokens(40)) + "x");
  CHECK_THAT(read_from(folder.path()), ContainsSubstring("c.bin has 81 bytes, an odd"));
  folder.write("c.bin", header(20240801, 7, 40) + raw(some_tokens(40), 4));
  CHECK_THAT(read_from(folder.path()),
             ContainsSubstring("c.bin has tokens of 32 bits, and")
               && ContainsSubstring("a.bin of 16: name files of the same width"));
  auto wrong = some_tokens(40);
  wrong[7] = 50257;
  folder.write("c.bin", raw(wrong));
  CHECK_THAT(read_from(folder.path()),
             ContainsSubstring("holds token 50257 at position 7 of c.bin"));
  folder.write("c.bin", "version https://git-lfs.github.com/spec/v1\n");
  CHECK_THAT(read_from(folder.path()), ContainsSubstring("c.bin is a Git LFS pointer"));
  temporary_folder empty;
  empty.write("notes.md", std::string(100, 'x'));
  CHECK_THAT(read_from(empty.path()),
             ContainsSubstring("(0 files read, 1 left out: notes.md) has no tokens"));
}

TEST_CASE("files to train on beside files to evaluate on are refused", "[tokens]") {
  for (const auto& [training, evaluation] :
       {std::pair{"train.bin", "val.bin"},
        {"fineweb_train_000001.bin", "fineweb_val_000000.bin"},
        {"tiny.train.bin", "tiny.test.bin"}}) {
    temporary_folder folder;
    folder.write(training, raw(some_tokens(60)));
    CHECK_THAT(read_from(folder.path()), ContainsSubstring("(1 file read)"));
    folder.write(evaluation, raw(some_tokens(60)));
    for (const auto& path : {folder.path(), folder.path() / "*.bin"})
      CHECK_THAT(
        read_from(path),
        ContainsSubstring(
          "name training data by --data and evaluation data by --evaluate-data"));
    CHECK_THAT(read_from(folder.path() / training), ContainsSubstring("60 tokens"));
  }
  temporary_folder folder; // names that contain the words only as parts
  folder.write("latest.bin", raw(some_tokens(60)));
  folder.write("constrained.bin", raw(some_tokens(60)));
  CHECK_THAT(read_from(folder.path()), ContainsSubstring("120 tokens"));
}

TEST_CASE("a token file is never in memory whole", "[tokens]") {
  temporary_folder folder;
  const auto path = folder.write("t.bin", "");
  constexpr std::int64_t size = 128 << 20;
  std::filesystem::resize_file(path, size); // zeros, which take no space on the disk
  const auto before = resident();
  const auto data = *opened(path, text_order::sequential, 1);
  for (std::int64_t k = 0; k < 100; ++k)
    CHECK(of(*data, k * (size / 2 / 8 / 100)).labels[7] == 0);
  CHECK(resident() - before < size / 8);
}

} // namespace troupe::tokens_test
