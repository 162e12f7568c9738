// SPDX-License-Identifier: BSD-3-Clause
// Weights as other tools write them: in several files, of other types, under a prefix,
// with tables longer than the model needs. The expected values are counted up here.

#include "models/safetensors.hpp"
#include "models/weights.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <map>
#include <vector>

namespace troupe::foreign_weights_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

namespace {

namespace fs = std::filesystem;

network<float> tiny_gpt(std::int64_t length = 4, std::int64_t words = 5,
                        std::int64_t layers = 1, std::int64_t width = 8) {
  return *make_network<float>({"gpt", layers, width, 2, length, words});
}

struct named_tensor {
  std::string name;
  std::vector<std::int64_t> dims;
  std::vector<float> values;
};

/// Value i of tensor number n is n + i / 4096.
std::vector<float> counted(std::size_t number, std::int64_t count) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < count; ++i)
    result.push_back(static_cast<float>(number) + static_cast<float>(i) / 4096);
  return result;
}

/// The tensors of a gpt without the head, which is the embedding.
std::vector<named_tensor> tensors_of(const network<float>& whole,
                                     const std::string& prefix = "") {
  std::vector<named_tensor> result;
  for (const auto* p : whole.parameters())
    if (p->name != "lm_head.weight")
      result.push_back(
        {prefix + p->name, p->dims, counted(result.size(), p->values())});
  return result;
}

void write(const fs::path& path, const std::vector<named_tensor>& tensors) {
  std::vector<tensor_to_store> stored;
  for (const auto& t : tensors)
    stored.push_back({t.name, t.dims, t.values.data()});
  REQUIRE(write_safetensors(path, stored).empty());
}

std::vector<float> values_of(const network<float>& whole, const weight_source& weights,
                             const std::string& name) {
  for (std::size_t l = 0; l < whole.layers.size(); ++l)
    for (const auto& p : whole.layers[l]->parameters())
      if (p.name == name) {
        std::vector<float> bucket(static_cast<std::size_t>(whole.layers[l]->bucket()));
        weights(l, bucket.data());
        return {bucket.begin() + p.offset, bucket.begin() + p.offset + p.values()};
      }
  return {};
}

/// Checks that all parameters of a gpt have their counted values.
void check_counted(const network<float>& whole, const weight_source& weights) {
  std::size_t number = 0;
  for (const auto* p : whole.parameters()) {
    const bool is_head = p->name == "lm_head.weight";
    CHECK(values_of(whole, weights, p->name)
          == counted(is_head ? 0 : number, p->values()));
    number += !is_head;
  }
}

/// Sizes of both files, and the file that the index gives for each tensor.
void write_in_two(const fs::path& folder, std::vector<named_tensor> tensors) {
  const auto middle = tensors.begin() + std::ssize(tensors) / 2;
  const std::vector<named_tensor> first{tensors.begin(), middle},
    second{middle, tensors.end()};
  write(folder / "model-1.safetensors", first);
  write(folder / "model-2.safetensors", second);
  std::ofstream index{folder / "model.safetensors.index.json"};
  index << R"({"metadata": {"total_size": 1}, "weight_map": {)";
  for (const auto* const part : {&first, &second})
    for (const auto& t : *part)
      index << (&t == &first.front() ? "" : ",") << '"' << t.name << R"(": "model-)"
            << (part == &first ? 1 : 2) << R"(.safetensors")";
  index << "}}";
}

std::string refusal_of(const fs::path& path, const network<float>& whole) {
  const auto read = weights_from(path, whole);
  return read ? "" : read.error();
}

} // namespace

TEST_CASE("a model in several files is read by its index, its folder or neither",
          "[weights]") {
  const temporary_folder folder;
  const auto whole = tiny_gpt();
  write_in_two(folder.path(), tensors_of(whole));
  const auto index = folder.path() / "model.safetensors.index.json";
  for (const auto& path : {folder.path(), index}) {
    const auto read = weights_from(path, whole);
    REQUIRE(read);
    check_counted(whole, *read);
    CHECK(safetensors_file::open(path)->path() == index);
  }
  CHECK_THAT(refusal_of(folder.path() / "model-1.safetensors", whole),
             ContainsSubstring("is missing"));
}

TEST_CASE("a damaged model of several files is refused, and the file is named",
          "[weights]") {
  const temporary_folder folder;
  const auto whole = tiny_gpt();
  const auto index = folder.path() / "model.safetensors.index.json";
  const auto second = folder.path() / "model-2.safetensors";
  write_in_two(folder.path(), tensors_of(whole));
  fs::rename(second, folder.path() / "kept");
  CHECK(refusal_of(index, whole)
        == "cannot read the weight file " + second.string()
             + ": No such file or directory; " + index.string() + " names it");
  std::ofstream{second} << "version https://git-lfs.github.com/spec/v1\noid sha256:0";
  CHECK_THAT(refusal_of(index, whole),
             ContainsSubstring("model-2.safetensors is not a safetensors file: it is a "
                               "Git LFS pointer"));
  // Tensors of both files are in one file, and none is in the other.
  fs::copy_file(folder.path() / "model-1.safetensors", second,
                fs::copy_options::overwrite_existing);
  CHECK_THAT(refusal_of(index, whole),
             ContainsSubstring("model-2.safetensors: tensor '")
               && ContainsSubstring("is in another file of the model too"));
  write(second, {{"b", {1}, {1}}});
  CHECK_THAT(refusal_of(index, whole),
             ContainsSubstring("is in model-2.safetensors, which does not have it"));
  for (const auto& [content, why] :
       {std::pair{R"({"weight_map": {"a": "../model-1.safetensors"}})",
                  "but only .safetensors files of the index's folder are allowed"},
        {R"({"weight_map": {"a": 7}})", "names 7 as the file"},
        {R"({"weight_map": {"a": "model-1.bin"}})", "names \"model-1.bin\" as the"},
        {R"({"weight_map": {}})", "names no tensor"},
        {R"({"weight_map": [1]})", "without a weight_map"},
        {R"({"weight_map": )", "without a weight_map"}}) {
    std::ofstream{index} << content;
    CHECK_THAT(refusal_of(index, whole), ContainsSubstring(why));
  }
}

TEST_CASE("a folder without an index has one file of weights, or is refused",
          "[weights]") {
  const temporary_folder folder;
  const auto whole = tiny_gpt();
  const auto bin = folder.write("pytorch_model.bin",
                                "PK\x03\x04" + std::string(22, '\0') + "\x10"
                                  + std::string(3, '\0') + "archive/data.pkl....");
  CHECK(refusal_of(folder.path(), whole)
        == folder.path().string()
             + " has no file that ends with .safetensors; pytorch_model.bin is a "
               "PyTorch file, which is a pickle, which the tool that wrote it can "
               "convert to safetensors");
  write(folder.path() / "gpt2.safetensors", tensors_of(whole));
  CHECK(refusal_of(folder.path(), whole).empty());
  write(folder.path() / "older.safetensors", tensors_of(whole));
  CHECK_THAT(refusal_of(folder.path(), whole),
             ContainsSubstring("has several files of weights, gpt2.safetensors, "
                               "older.safetensors: name a single file"));
  write(folder.path() / "model.safetensors", tensors_of(tiny_gpt(3)));
  CHECK_THAT(refusal_of(folder.path(), whole),
             ContainsSubstring("say --seq 3 or less"));
}

TEST_CASE("a prefix that all names share is none of the parameters' names",
          "[weights]") {
  const temporary_folder folder;
  const auto path = folder.path() / "w.safetensors";
  const auto whole = tiny_gpt();
  for (const char* prefix : {"_orig_mod.", "module.", "model.", "_orig_mod.module."}) {
    auto tensors = tensors_of(whole, prefix);
    tensors.push_back({prefix + std::string{"transformer.h.0.attn.bias"}, {1}, {1}});
    write(path, tensors);
    const auto read = weights_from(path, whole);
    REQUIRE(read);
    check_counted(whole, *read);
  }
  auto mixed = tensors_of(whole, "module.");
  mixed.front().name = tensors_of(whole).front().name;
  write(path, mixed);
  CHECK_THAT(refusal_of(path, whole), ContainsSubstring("is missing"));
  // Names of Hugging Face without "transformer.", under a prefix.
  auto bare = tensors_of(whole);
  for (auto& t : bare)
    t.name.replace(0, std::string{"transformer."}.size(), "module.");
  write(path, bare);
  check_counted(whole, *weights_from(path, whole));
  const auto perceptron = *make_network<float>({"mlp", 1});
  std::vector<named_tensor> of_perceptron;
  for (const auto* p : perceptron.parameters())
    of_perceptron.push_back({"_orig_mod." + p->name, p->dims, counted(1, p->values())});
  write(path, of_perceptron);
  CHECK(refusal_of(path, perceptron).empty());
}

TEST_CASE("of more positions than a sequence has the first are used, and that is said",
          "[weights]") {
  const temporary_folder folder;
  const auto path = folder.path() / "w.safetensors";
  const auto longer = tiny_gpt(16), whole = tiny_gpt(4);
  write(path, tensors_of(longer));
  std::vector<std::string> notes;
  const auto read = weights_from(path, whole, &notes);
  REQUIRE(read);
  check_counted(whole, *read);
  CHECK(notes
        == std::vector{path.string()
                       + ": the first 4 of 16 positions of tensor "
                         "'transformer.wpe.weight' are used"});
  notes.clear();
  REQUIRE(weights_from(path, longer, &notes));
  CHECK(notes.empty());
  CHECK_THAT(
    refusal_of(path, tiny_gpt(17)),
    ContainsSubstring("is [16, 8]; the model needs [17, 8]: say --seq 16 or less"));
}

TEST_CASE("words that only make a vocabulary a round number are left out",
          "[weights]") {
  const temporary_folder folder;
  const auto path = folder.path() / "w.safetensors";
  const auto whole = tiny_gpt(4, 5);
  for (const auto rows : {6, 8, 64, 128}) {
    auto tensors = tensors_of(tiny_gpt(4, rows));
    write(path, tensors);
    std::vector<std::string> notes;
    const auto read = weights_from(path, whole, &notes);
    REQUIRE(read);
    check_counted(whole, *read); // both tables are cut
    CHECK(notes
          == std::vector{path.string() + ": the first 5 of " + std::to_string(rows)
                         + " words of tensor 'transformer.wte.weight' are used"});
  }
  for (const auto rows : {4, 7, 10, 256}) {
    write(path, tensors_of(tiny_gpt(4, rows)));
    CHECK_THAT(
      refusal_of(path, whole),
      ContainsSubstring("the model needs [5, 8]: say --vocab " + std::to_string(rows)));
  }
  // A config may say that there are no more words.
  fs::rename(path, folder.path() / "model.safetensors");
  std::ofstream{folder.path() / "config.json"}
    << R"({"model_type": "gpt2", "n_head": 2, "vocab_size": 5})";
  check_counted(whole, *weights_from(folder.path(), whole));
}

TEST_CASE("tensors of other shapes are refused with the option that helps",
          "[weights]") {
  const temporary_folder folder;
  const auto path = folder.path() / "w.safetensors";
  write(path, tensors_of(tiny_gpt(4, 5, 2)));
  CHECK_THAT(refusal_of(path, tiny_gpt(4, 5, 3)),
             ContainsSubstring("'transformer.h.2.ln_1.weight' is missing: say --layers "
                               "2"));
  CHECK_THAT(refusal_of(path, tiny_gpt(4, 5, 1)),
             ContainsSubstring("no tensor 'transformer.h.1.")
               && ContainsSubstring("say --layers 2"));
  CHECK_THAT(refusal_of(path, tiny_gpt(4, 5, 2, 16)),
             ContainsSubstring("say --d-model 8"));
  CHECK(refusal_of(path, tiny_gpt(6, 9, 3, 16))
        == path.string()
             + ": tensor 'transformer.wte.weight' is [5, 8]; the model needs [9, 16]: "
               "say --layers 2 --d-model 8 --vocab 5 --seq 4 or less");
  auto transposed = tensors_of(tiny_gpt());
  for (auto& t : transposed)
    if (t.name == "transformer.h.0.attn.c_attn.weight")
      std::ranges::reverse(t.dims);
  write(path, transposed);
  CHECK_THAT(refusal_of(path, tiny_gpt()),
             ContainsSubstring("is [24, 8]; the model needs [8, 24], transposed"));
}

TEST_CASE("a config that contradicts the tensors is named, and no option",
          "[weights]") {
  const temporary_folder folder;
  const auto path = folder.path() / "model.safetensors";
  write(path, tensors_of(tiny_gpt(4, 5, 2)));
  const auto refusal_beside = [&](const std::string& sizes, const network<float>& of) {
    std::ofstream{folder.path() / "config.json"}
      << R"({"model_type": "gpt2", "n_head": 2, )" << sizes << "}";
    return refusal_of(path, of);
  };
  const auto config = (folder.path() / "config.json").string();
  CHECK_THAT(
    refusal_beside(R"("n_layer": 3, "n_embd": 8)", tiny_gpt(4, 5, 3)),
    EndsWith("h.2.ln_1.weight' is missing: correct " + config + " to n_layer 2"));
  CHECK_THAT(refusal_beside(R"("n_layer": 3, "n_embd": 16, "vocab_size": 9)",
                            tiny_gpt(6, 9, 3, 16)),
             EndsWith(": correct " + config
                      + " to n_layer 2, n_embd 8, vocab_size 5, and say --seq 4 or "
                        "less"));
  CHECK_THAT(refusal_beside(R"("n_embd": 8)", tiny_gpt(4, 5, 3)),
             EndsWith("is missing: say --layers 2"));
}

} // namespace troupe::foreign_weights_test
