// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/data_name.hpp"
#include "models/data/mnist.hpp"
#include "models/data/open_data.hpp"
#include "models/data/shuffle.hpp"
#include "models/data/synthetic.hpp"
#include "models/data/text.hpp"
#include "models/random.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/unprivileged.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

namespace troupe::data_test {

using Catch::Matchers::ContainsSubstring;

namespace {

struct text_sample {
  explicit text_sample(std::int64_t length)
    : tokens(static_cast<std::size_t>(length)), labels(tokens.size()) {
    // nop
  }

  sample_view view() { return {.tokens = tokens.data(), .labels = labels.data()}; }

  std::vector<std::int32_t> tokens, labels;
};

struct image_sample {
  sample_view view() { return {.pixels = pixels.data(), .labels = &label}; }

  std::vector<float> pixels = std::vector<float>(784);
  std::int32_t label = -1;
};

std::string some_text(std::size_t size) {
  std::string result;
  for (std::size_t i = 0; i < size; ++i)
    result += static_cast<char>('a' + i % 23);
  return result;
}

const std::filesystem::path shipped = TROUPE_DATA;

} // namespace

TEST_CASE("text in order is bytes kT to kT+T, wrapping", "[text]") {
  temporary_folder folder;
  const auto path = folder.write("a.txt", some_text(100));
  const auto data = *text_data(path, text_order::sequential, 16, 256, 1);
  const auto text = some_text(100);
  for (const std::int64_t k : {0, 1, 5, 6, 7, 1000}) {
    text_sample s{16};
    data->training(k, s.view());
    for (std::int64_t t = 0; t < 16; ++t) {
      CHECK(s.tokens[static_cast<std::size_t>(t)]
            == text[static_cast<std::size_t>((k * 16 + t) % 100)]);
      CHECK(s.labels[static_cast<std::size_t>(t)]
            == text[static_cast<std::size_t>((k * 16 + t + 1) % 100)]);
    }
  }
}

TEST_CASE("windows at random depend on the seed and never touch what is held out",
          "[text]") {
  temporary_folder folder;
  auto text = some_text(1000);
  text.replace(900, 100, std::string(100, '!'));
  const auto path = folder.write("a.txt", text);
  const auto one = *text_data(path, text_order::random, 16, 256, 1);
  const auto same = *text_data(path, text_order::random, 16, 256, 1);
  const auto other = *text_data(path, text_order::random, 16, 256, 2);
  int differ = 0;
  std::set<std::int32_t> starts;
  for (int k = 0; k < 200; ++k) {
    text_sample a{16}, b{16}, c{16};
    one->training(k, a.view());
    same->training(k, b.view());
    other->training(k, c.view());
    CHECK(a.tokens == b.tokens);
    differ += a.tokens != c.tokens;
    starts.insert(a.tokens[0]);
    for (std::size_t t = 0; t + 1 < 16; ++t)
      CHECK(a.labels[t] == a.tokens[t + 1]);
    CHECK(std::ranges::find(a.labels, '!') == a.labels.end());
  }
  CHECK(differ > 150);
  CHECK(starts.size() > 10);
  CHECK(one->evaluation_size() == 6);
  text_sample last{16};
  one->evaluation(5, last.view());
  CHECK(last.tokens[0] == '!');
}

TEST_CASE("a folder is all its files in order of name", "[text]") {
  temporary_folder folder;
  folder.write("b.txt", some_text(50));
  folder.write("a.txt", std::string(50, 'z'));
  const auto data = *text_data(folder.path(), text_order::sequential, 8, 256, 1);
  text_sample s{8};
  data->training(0, s.view());
  CHECK(s.tokens[0] == 'z');
  data->training(7, s.view());
  CHECK(s.tokens[0] == 'a' + 6);
}

TEST_CASE("hidden and packed files of a folder are no text, and that is said",
          "[text]") {
  const auto report =
    *text_data(TROUPE_GOLDEN "/reports/text-folder", text_order::random, 8, 256, 1);
  CHECK(report->description()
        == "text text-folder (1 file read, 1 left out: .DS_Store), 1800 bytes, windows "
           "at random");
  temporary_folder folder;
  const auto description = [&] {
    return (*text_data(folder.path(), text_order::sequential, 8, 256, 1))
      ->description();
  };
  folder.write("a.txt", some_text(50));
  CHECK_THAT(description(), ContainsSubstring("(1 file read), 50 bytes"));
  folder.write("b.txt", some_text(30));
  CHECK_THAT(description(),
             ContainsSubstring("(2 files read, a.txt to b.txt), 80 bytes"));
  folder.write(".gitignore", "*.o");
  folder.write("c.txt.gz", "not packed, but called so");
  std::filesystem::create_directory(folder.path() / "more");
  CHECK_THAT(description(),
             ContainsSubstring(
               "(2 files read, a.txt to b.txt, 3 left out: .gitignore, c.txt.gz, "
               "more/), 80 bytes"));
  // Recognised as packed by the content alone.
  const auto packed = folder.write("d.txt", "\x1f\x8b\x08" + some_text(60));
  CHECK_THAT(
    description(),
    ContainsSubstring(
      "(2 files read, a.txt to b.txt, 4 left out: .gitignore, c.txt.gz, d.txt, ..), "
      "80 bytes"));
  CHECK(text_data(packed, text_order::random, 8, 256, 1).error()
        == packed.string() + " is a gzip file: unpack it");
  const auto pointer =
    folder.write("e.txt", "version https://git-lfs.github.com/spec/v1\n");
  for (const auto& path : {pointer, folder.path()})
    CHECK_THAT(text_data(path, text_order::random, 8, 256, 1).error(),
               ContainsSubstring("e.txt is a Git LFS pointer: fetch"));
}

TEST_CASE("texts to train on beside texts to evaluate on are refused", "[text]") {
  temporary_folder folder;
  folder.write("train.txt", some_text(500));
  CHECK(text_data(folder.path(), text_order::random, 8, 256, 1).has_value());
  folder.write("val.txt", some_text(500));
  CHECK_THAT(text_data(folder.path(), text_order::random, 8, 256, 1).error(),
             ContainsSubstring(
               "name training data by --data and evaluation data by --evaluate-data"));
}

TEST_CASE("a folder without any text says what was left out", "[text]") {
  temporary_folder folder;
  folder.write(".hidden", some_text(500));
  CHECK_THAT(text_data(folder.path(), text_order::random, 8, 256, 1).error(),
             ContainsSubstring("(0 files read, 1 left out: .hidden) has 0 bytes"));
}

TEST_CASE("a pattern is the files that a shell would name", "[text]") {
  temporary_folder folder;
  folder.write("b1.txt", some_text(50));
  folder.write("b2.txt", std::string(50, 'z'));
  folder.write("c1.txt", some_text(70));
  folder.write(".b3.txt", some_text(90));
  const auto described = [&](const char* pattern) {
    const auto data =
      text_data(folder.path() / pattern, text_order::sequential, 8, 256, 1);
    return data ? (*data)->description() : data.error();
  };
  CHECK(described("b*.txt")
        == "text b*.txt (2 files read, b1.txt to b2.txt), 100 bytes, in order");
  CHECK_THAT(described("?1.txt"),
             ContainsSubstring("(2 files read, b1.txt to c1.txt)"));
  CHECK_THAT(described("[a-c]2.txt"), ContainsSubstring("(1 file read), 50 bytes"));
  CHECK(described("d*")
        == "no file that can be read matches " + (folder.path() / "d*").string());
  CHECK_THAT(described("none/*"), ContainsSubstring("cannot read the folder"));
  folder.write("b*.txt", some_text(30)); // the file of this very name takes precedence
  CHECK(described("b*.txt") == "text b*.txt, 30 bytes, in order");
}

TEST_CASE("a folder outside of what may be read is not listed", "[text]") {
  temporary_folder folder;
  std::filesystem::create_directory(folder.path() / "in");
  std::filesystem::create_directory(folder.path() / "out");
  folder.write("out/.secret", "s");
  for (const char* path : {"out", "in/../out", "out/*"}) {
    const auto wrong = text_data(folder.path() / path, text_order::random, 8, 256, 1,
                                 folder.path() / "in")
                         .error();
    CHECK_THAT(wrong,
               ContainsSubstring("is outside the folder that may be read (--folder)"));
    CHECK_THAT(wrong, !ContainsSubstring("secret"));
  }
}

TEST_CASE("texts that cannot be used are refused", "[text]") {
  temporary_folder folder;
  const auto refusal = [&](const std::string& text, std::int64_t words,
                           std::int64_t length) {
    const auto data =
      text_data(folder.write("t", text), text_order::random, length, words, 1);
    return data ? std::string{} : data.error();
  };
  CHECK_THAT(refusal("short", 256, 16),
             ContainsSubstring("longer than a sequence of 16"));
  CHECK_THAT(refusal("", 256, 16), ContainsSubstring("has 0 bytes"));
  CHECK_THAT(refusal(some_text(500), 100, 16),
             ContainsSubstring("holds byte 100 at position 3")
               && ContainsSubstring("--vocab 100"));
  CHECK_THAT(text_data(folder.path() / "none", text_order::random, 8, 256, 1).error(),
             ContainsSubstring("cannot read the text"));
}

TEST_CASE("files and folders that cannot be read are named, and nothing waits for them",
          "[text][mnist]") {
  namespace fs = std::filesystem;
  temporary_folder folder;
  fs::permissions(folder.path(), fs::perms::all);
  const auto fifo = folder.path() / "fifo", closed = folder.path() / "closed";
  REQUIRE(mkfifo(fifo.c_str(), 0666) == 0);
  fs::create_directory(closed);
  fs::create_directory(folder.path() / "texts");
  fs::permissions(folder.write("texts/secret", some_text(500)), fs::perms{0});
  REQUIRE(mkfifo((folder.path() / "t10k-images-idx3-ubyte").c_str(), 0666) == 0);
  fs::permissions(closed, fs::perms{0});
  const unprivileged user;
  const auto refusal_of_text = [](const fs::path& path) {
    return text_data(path, text_order::random, 8, 256, 1).error();
  };
  CHECK(refusal_of_text(fifo)
        == "cannot read the text " + fifo.string()
             + ": it is a FIFO, not a regular file");
  CHECK(refusal_of_text(closed)
        == "cannot read the folder " + closed.string() + ": Permission denied");
  CHECK_THAT(refusal_of_text(closed / "a.txt"), ContainsSubstring("Permission denied"));
  CHECK_THAT(refusal_of_text(folder.path() / "texts"),
             ContainsSubstring("secret: Permission denied"));
  CHECK(mnist_data(closed, 1).error()
        == "cannot read the folder " + closed.string() + ": Permission denied");
  CHECK_THAT(mnist_data(folder.path(), 1).error(), ContainsSubstring("it is a FIFO"));
  CHECK_THAT(mnist_data(folder.path() / "none", 1).error(),
             ContainsSubstring("has no t10k-images"));
}

TEST_CASE("a Markov source has the entropy it claims", "[synthetic]") {
  const auto data = synthetic_text(64, 10, 1);
  std::map<std::pair<int, int>, double> pairs;
  std::map<int, double> firsts;
  for (int k = 0; k < 2000; ++k) {
    text_sample s{64};
    data->training(k, s.view());
    for (std::size_t t = 0; t < 64; ++t) {
      ++pairs[{s.tokens[t], s.labels[t]}];
      ++firsts[s.tokens[t]];
    }
  }
  double entropy = 0;
  for (const auto& [pair, count] : pairs)
    entropy -= count * std::log(count / firsts[pair.first]);
  entropy /= 64 * 2000;
  CHECK(std::abs(entropy - *data->loss_floor()) < 0.005);
  CHECK(std::abs(*data->loss_floor() - 1.75 * std::log(2)) < 1e-12);
  CHECK(*synthetic_text(8, 1, 1)->loss_floor() == 0);
  CHECK(std::abs(*synthetic_text(8, 2, 1)->loss_floor() - std::log(2)) < 1e-12);
  CHECK(std::abs(*synthetic_text(8, 3, 1)->loss_floor() - 1.5 * std::log(2)) < 1e-12);
}

TEST_CASE("synthetic samples depend on seed and index, and evaluation is apart",
          "[synthetic]") {
  const auto one = synthetic_text(16, 50, 1), other = synthetic_text(16, 50, 2);
  text_sample a{16}, b{16};
  one->training(3, a.view());
  one->training(3, b.view());
  CHECK(a.tokens == b.tokens);
  other->training(3, b.view());
  CHECK(a.tokens != b.tokens);
  one->evaluation(3, b.view());
  CHECK(a.tokens != b.tokens);
  const auto images = synthetic_images(1);
  image_sample p, q;
  std::set<int> kinds;
  for (int k = 0; k < 100; ++k) {
    images->training(k, p.view());
    images->training(k, q.view());
    CHECK(p.pixels == q.pixels);
    kinds.insert(p.label);
    CHECK(std::ranges::min(p.pixels) >= 0);
    CHECK(std::ranges::max(p.pixels) <= 1);
  }
  CHECK(kinds.size() == 10);
}

TEST_CASE("a normal number above zero is the normal number, or zero", "[synthetic]") {
  const random_stream draws{3, "numbers"};
  int above = 0;
  for (std::uint64_t n = 0; n < 100'000; ++n) {
    const double expected = std::max(draws.normal(n), 0.0);
    above += expected > 0;
    REQUIRE(draws.normal_above_zero(n) == expected);
  }
  CHECK(std::abs(above - 50'000) < 5 * 159); // 5 deviations of a fair coin
}

TEST_CASE("each epoch has each item once, in an order of its own", "[shuffle]") {
  for (const std::int64_t size : {1, 2, 7, 64, 1000}) {
    const epoch_shuffle order{size, 5};
    std::vector<std::int64_t> first, second;
    for (std::int64_t i = 0; i < size; ++i) {
      first.push_back(order.item_at(i));
      second.push_back(order.item_at(size + i));
    }
    if (size > 10)
      CHECK(first != second);
    for (auto* items : {&first, &second}) {
      std::ranges::sort(*items);
      for (std::int64_t i = 0; i < size; ++i)
        CHECK((*items)[static_cast<std::size_t>(i)] == i);
    }
  }
}

namespace {

struct image_sums {
  void add(const image_sample& s) {
    ++labels.at(static_cast<std::size_t>(s.label));
    for (const float p : s.pixels)
      pixels += std::lround(p * 255);
  }

  std::array<int, 10> labels{};
  std::int64_t pixels = 0;
};

} // namespace

// Counts and sums are computed by Python from the npm package's digits.
TEST_CASE("the images here are 9,000 of MNIST's to train with and 1,000 held out",
          "[mnist]") {
  const auto data = mnist_data(shipped / "mnist", 1);
  INFO((data ? "" : data.error()));
  REQUIRE(data.has_value());
  REQUIRE((*data)->epoch() == 9000);
  REQUIRE((*data)->evaluation_size() == 1000);
  image_sample s;
  image_sums training, held_out;
  for (std::int64_t k = 0; k < 9000; ++k) {
    (*data)->training(k, s.view());
    training.add(s);
  }
  for (std::int64_t k = 0; k < 1000; ++k) {
    (*data)->evaluation(k, s.view());
    held_out.add(s);
  }
  CHECK(s.label == 0); // label of the last image
  CHECK(training.labels
        == std::array{896, 1002, 896, 925, 896, 770, 919, 969, 853, 874});
  CHECK(held_out.labels == std::array{105, 125, 95, 107, 84, 93, 95, 101, 91, 104});
  CHECK(training.pixels == 235'938'196);
  CHECK(held_out.pixels == 26'208'404);
}

TEST_CASE("MNIST's t10k pair alone is split nine to one", "[mnist]") {
  temporary_folder folder;
  for (const char* name : {"t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"})
    std::filesystem::copy(shipped / "mnist" / name, folder.path() / name);
  const auto data = mnist_data(folder.path(), 1, true);
  REQUIRE(data.has_value());
  CHECK((*data)->epoch() == 900);
  CHECK((*data)->evaluation_size() == 100);
  image_sample s;
  (*data)->evaluation(99, s.view());
  CHECK(s.label == 0); // label of the last image
}

// The sum and the lines are counted by Python from the package's text.
TEST_CASE("the text here is the whole of Emma", "[text]") {
  const auto data = text_data(shipped / "emma.txt", text_order::sequential, 4, 256, 1);
  INFO((data ? "" : data.error()));
  REQUIRE(data.has_value());
  CHECK((*data)->description() == "text emma.txt, 883028 bytes, in order");
  REQUIRE((*data)->epoch() == 883'028 / 4);
  text_sample s{4};
  std::int64_t sum = 0, lines = 0;
  std::string begin;
  for (std::int64_t k = 0; k < 883'028 / 4; ++k) {
    (*data)->training(k, s.view());
    for (const auto token : s.tokens) {
      sum += token;
      lines += token == '\n';
    }
    if (k < 5)
      begin.append(s.tokens.begin(), s.tokens.end());
  }
  CHECK(begin == "EMMA\n\nBy Jane Austen");
  CHECK(sum == 79'655'469);
  CHECK(lines == 16'235);
}

namespace {

/// An IDX file of `count` images, or of labels if there is no `side`.
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

std::string mnist_refusal(const std::string& images, const std::string& labels) {
  temporary_folder folder;
  if (!images.empty())
    folder.write("t10k-images-idx3-ubyte", images);
  folder.write("t10k-labels-idx1-ubyte", labels);
  const auto data = mnist_data(folder.path(), 1, true);
  return data ? "" : data.error();
}

} // namespace

TEST_CASE("MNIST trains on t10k only where that is asked for", "[mnist]") {
  temporary_folder folder;
  folder.write("t10k-images-idx3-ubyte", idx(20, 28));
  folder.write("t10k-labels-idx1-ubyte", idx(20, 0));
  const auto text = "mnist:" + folder.path().string();
  const model_options mlp{"mlp"};
  CHECK_THAT(open_data(text, mlp, 1).error(),
             ContainsSubstring("has no train-images-idx3-ubyte")
               && ContainsSubstring("split=t10k"));
  const auto split = open_data(text + ",split=t10k", mlp, 1);
  REQUIRE(split);
  CHECK((*split)->epoch() == 18);
  folder.write("train-labels-idx1-ubyte", idx(30, 0));
  CHECK_THAT(open_data(text, mlp, 1).error(),
             ContainsSubstring("has no train-images-idx3-ubyte"));
  folder.write("train-images-idx3-ubyte", idx(30, 28));
  CHECK((*open_data(text, mlp, 1))->epoch() == 30);
  CHECK((*open_data(text + ",split=t10k", mlp, 1))->epoch() == 18);
}

TEST_CASE("MNIST's files may have a dot in their names", "[mnist]") {
  const auto data = mnist_data(TROUPE_GOLDEN "/reports/mnist-dotted-train", 1);
  REQUIRE(data);
  CHECK((*data)->epoch() == 60);
  CHECK((*data)->evaluation_size() == 20);
  temporary_folder folder; // each file with a dot or a hyphen
  folder.write("t10k-images.idx3-ubyte", idx(20, 28));
  folder.write("t10k-labels.idx1-ubyte", idx(20, 0));
  folder.write("train-images-idx3-ubyte", idx(30, 28));
  folder.write("train-labels.idx1-ubyte", idx(30, 0));
  CHECK((*mnist_data(folder.path(), 1))->epoch() == 30);
}

TEST_CASE("damaged IDX files are refused whole", "[mnist]") {
  CHECK(mnist_refusal(idx(20, 28), idx(20, 0)).empty());
  CHECK_THAT(mnist_refusal("", idx(20, 0)), ContainsSubstring("has no t10k-images"));
  CHECK_THAT(mnist_refusal(idx(20, 28).substr(0, 3), idx(20, 0)),
             ContainsSubstring("shorter than its header"));
  CHECK_THAT(mnist_refusal(idx(20, 28).substr(0, 9000), idx(20, 0)),
             ContainsSubstring("bytes of data, but by its header"));
  CHECK_THAT(mnist_refusal(idx(20, 28) + "x", idx(20, 0)),
             ContainsSubstring("bytes of data, but by its header"));
  CHECK_THAT(mnist_refusal(idx(20, 27), idx(20, 0)), ContainsSubstring("not 28 by 28"));
  CHECK_THAT(mnist_refusal(idx(20, 0), idx(20, 0)), ContainsSubstring("magic number"));
  CHECK_THAT(mnist_refusal(idx(20, 28), idx(19, 0)),
             ContainsSubstring("19 t10k labels for 20 images"));
  CHECK_THAT(
    mnist_refusal(idx(0, 28), idx(0, 0)),
    ContainsSubstring("has no t10k images, as the headers of its files count 0"));
  auto letters = idx(20, 0);
  letters.back() = 'x';
  CHECK_THAT(mnist_refusal(idx(20, 28), letters), ContainsSubstring("not digits"));
  CHECK_THAT(mnist_refusal("\x1f\x8b" + std::string(100, 'x'), idx(20, 0)),
             ContainsSubstring("damaged"));
  CHECK_THAT(mnist_refusal("version https://git-lfs.github.com/spec/v1\n", ""),
             ContainsSubstring("is a Git LFS pointer, not images"));
}

TEST_CASE("data is named as users name it", "[data]") {
  temporary_folder folder;
  const auto path = folder.write("a.txt", some_text(500)).string();
  const model_options gpt{"gpt", 1, 8, 2, 8, 256}, mlp{"mlp"};
  CHECK(open_data("synthetic", gpt, 1).has_value());
  CHECK(open_data("synthetic", mlp, 1).has_value());
  CHECK(open_data("text:" + path, gpt, 1).has_value());
  CHECK_FALSE((*open_data("text:" + path, gpt, 1))->evaluates_training_data());
  CHECK_FALSE((*open_data("synthetic", gpt, 1))->evaluates_training_data());
  CHECK((*open_data("text:" + path + ",order=sequential", gpt, 1))
          ->evaluates_training_data());
  const auto tokens = folder.write("t.bin", std::string(500, '\0')).string();
  CHECK_THAT((*open_data("tokens:" + tokens, gpt, 1))->description(),
             ContainsSubstring("250 tokens, windows at random"));
  CHECK_THAT(
    (*open_data("tokens:" + tokens + ",order=sequential", gpt, 1))->description(),
    ContainsSubstring("250 tokens, in order"));
  CHECK_THAT((*open_data("text:" + path + ",order=sequential", gpt, 1))->description(),
             ContainsSubstring("in order"));
  const auto refusal = [&](const std::string& name, const model_options& model) {
    return open_data(name, model, 1).error();
  };
  CHECK_THAT(refusal("cifar", mlp),
             ContainsSubstring("no data 'cifar'") && ContainsSubstring("mnist:FOLDER"));
  CHECK_THAT(refusal("text:", gpt), ContainsSubstring("no data 'text:'"));
  CHECK_THAT(refusal("text:" + path, mlp), ContainsSubstring("trains on images"));
  CHECK_THAT(refusal("tokens:" + tokens, mlp), ContainsSubstring("trains on images"));
  CHECK_THAT(refusal("mnist:" + path, gpt), ContainsSubstring("trains on text"));
  CHECK_THAT(refusal("text:" + path + ",order=random2", gpt),
             ContainsSubstring("random or sequential"));
  CHECK_THAT(refusal("text:" + path + ",width=32", gpt),
             ContainsSubstring("width= is no key of text"));
  CHECK_THAT(refusal("tokens:" + tokens + ",width=8", gpt),
             ContainsSubstring("write 16 or 32"));
  CHECK_THAT(refusal("mnist:" + path + ",order=random", mlp),
             ContainsSubstring("order= is no key of mnist"));
  CHECK_THAT(refusal("mnist:" + path + ",split=train", mlp),
             ContainsSubstring("split=train: write t10k, or leave split= out"));
  CHECK_THAT(refusal("text:" + path + ",order=random,order=sequential", gpt),
             ContainsSubstring("has order= twice: give each key once"));
}

TEST_CASE("data for evaluations is all evaluated, and no data is held out for it",
          "[data]") {
  temporary_folder folder;
  auto text = some_text(100);
  text.back() = '!';
  const auto training = "text:" + folder.write("t.txt", text).string(),
             evaluation =
               "text:" + folder.write("v.txt", std::string(41, '?')).string();
  const model_options gpt{.length = 8};
  const auto data = *open_data_sets(training, evaluation, gpt, 1);
  CHECK(data->description()
        == "text t.txt, 100 bytes; evaluated on text v.txt, 41 bytes");
  CHECK(data->epoch() == 12);
  CHECK(data->evaluation_size() == 5); // 40 tokens, and a label behind them
  CHECK_FALSE(data->evaluates_training_data());
  text_sample s{8};
  data->evaluation(4, s.view());
  CHECK(s.tokens == std::vector<std::int32_t>(8, '?'));
  CHECK(s.labels == std::vector<std::int32_t>(8, '?'));
  int last = 0;
  for (int k = 0; k < 1000; ++k) {
    data->training(k, s.view());
    CHECK(std::ranges::find(s.labels, '?') == s.labels.end());
    last += s.labels.back() == '!';
  }
  CHECK(last > 0); // the last window of 92, about 11 times
  CHECK(last < 30);
  CHECK((*open_data_sets(training, training, gpt, 1))->evaluates_training_data());
  const temporary_folder corpus;
  const auto one = corpus.write("a.txt", std::string(300, 'a')).string();
  corpus.write("b.txt", std::string(300, 'b'));
  const auto all = "text:" + corpus.path().string();
  for (const auto& [trained, evaluated] :
       {std::pair{all, "text:" + one}, std::pair{"text:" + one, all}})
    CHECK((*open_data_sets(trained, evaluated, gpt, 1))->evaluates_training_data());
  const std::string images = "mnist:" TROUPE_DATA "/mnist";
  const model_options lenet{.model = "lenet"};
  CHECK((*open_data_sets(images + ",split=t10k", images, lenet, 1))
          ->evaluates_training_data());
  CHECK_FALSE(
    (*open_data_sets(images + ",split=t10k", images + ",split=t10k", lenet, 1))
      ->evaluates_training_data());
  const auto alone = *open_evaluation_data(evaluation, gpt, 1);
  CHECK(alone->evaluation_size() == 5);
  CHECK_FALSE(alone->evaluates_training_data());
  CHECK((*open_data_sets("synthetic", evaluation, gpt, 1))->evaluation_size() == 5);
  CHECK((*open_data_sets(training, "synthetic", gpt, 1))->loss_floor().has_value());
  const auto refusal = [&](const std::string& name) {
    return open_data_sets(training, name, gpt, 1).error();
  };
  CHECK_THAT(refusal("text:none"),
             ContainsSubstring("--evaluate-data: cannot read the text none"));
  CHECK_THAT(
    refusal(evaluation + ",order=sequential"),
    ContainsSubstring("--evaluate-data: order= applies only to training data"));
  CHECK_THAT(refusal("text:" + folder.write("s.txt", "12345678").string()),
             ContainsSubstring("a text must be longer than a sequence of 8"));
  CHECK_THAT(refusal("mnist:x"), ContainsSubstring("trains on text or tokens"));
}

TEST_CASE("the text of data is cut into a kind, a path and values", "[data]") {
  using values = std::map<std::string, std::string>;
  const auto check = [](const std::string& text, const std::string& kind,
                        const std::string& path, const values& expected) {
    const auto name = parse_data_name(text);
    CHECK(name.kind == kind);
    CHECK(name.path == path);
    CHECK(name.values == expected);
  };
  check("synthetic", "synthetic", "", {});
  check("text:a.txt", "text", "a.txt", {});
  check("text:a,b=c:d.txt", "text", "a,b=c:d.txt", {});
  check("text:a.txt,order=sequential", "text", "a.txt", {{"order", "sequential"}});
  check("tokens:a:b,width=32,order=random", "tokens", "a:b",
        {{"order", "random"}, {"width", "32"}});
  check("tokens:a,width=16,width=32", "tokens", "a", {{"width", "32"}});
  check("tokens:a,order=", "tokens", "a", {{"order", ""}});
  CHECK(parse_data_name("tokens:a,width=16,width=32").repeated_key == "width");
  CHECK(parse_data_name("tokens:a,width=16,order=random").repeated_key == "");
}

} // namespace troupe::data_test
