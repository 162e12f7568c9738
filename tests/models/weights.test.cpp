// SPDX-License-Identifier: BSD-3-Clause
#include "models/weights.hpp"

#include "models/safetensors.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>

namespace troupe::weights_test {

using Catch::Matchers::ContainsSubstring;

namespace {

network<float> tiny_gpt(bool tied = false) {
  return *make_network<float>({"gpt", 2, 8, 2, 4, 5, {}, tied});
}

std::vector<std::vector<float>> filled(const network<float>& whole,
                                       const weight_source& weights) {
  std::vector<std::vector<float>> result;
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    result.emplace_back(static_cast<std::size_t>(whole.layers[l]->bucket()));
    weights(l, result.back().data());
  }
  return result;
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// A file with this header and `data` bytes of zeros.
std::filesystem::path with_header(const temporary_folder& folder,
                                  const std::string& header, std::size_t data,
                                  std::uint64_t claimed = 0) {
  const std::uint64_t length = claimed != 0 ? claimed : header.size();
  std::string prefix(8, '\0');
  for (std::size_t i = 0; i < 8; ++i)
    prefix[i] = static_cast<char>(length >> (8 * i));
  return folder.write("w.safetensors", prefix + header + std::string(data, '\0'));
}

} // namespace

TEST_CASE("weights of another format are refused by its name", "[weights]") {
  temporary_folder folder;
  for (const auto& [content, name] :
       {std::pair<std::string, const char*>{
          "version https://git-lfs.github.com/spec/v1\noid sha256:0",
          "a Git LFS pointer"},
        {{"PK\x03\x04\0\0\0\0", 8}, "a zip file"},
        {"GGUF....", "a GGUF file"}})
    CHECK_THAT(
      weights_from(folder.write("w.safetensors", content), tiny_gpt()).error(),
      ContainsSubstring(std::string{"is not a safetensors file: it is "} + name));
}

TEST_CASE("a file says of itself what it was given, and of others what is text",
          "[weights]") {
  temporary_folder folder;
  const float one = 1;
  const std::vector<tensor_to_store> tensors{{"a", {1}, &one}};
  const auto path = folder.path() / "w.safetensors";
  const file_metadata says{{"--layers", "4"}, {"b", "\"quoted\" and\nbroken"}};
  REQUIRE(write_safetensors(path, tensors, says).empty());
  auto want = says;
  want["format"] = "pt"; // which Hugging Face requires in every file
  CHECK(safetensors_file::open(path)->metadata() == want);
  const std::string tensor = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const auto open = [&](const std::string& metadata) {
    return safetensors_file::open(
             with_header(folder, R"({"__metadata__":)" + metadata + "," + tensor, 4))
      ->metadata();
  };
  CHECK(open(R"({"x":"y","number":3,"list":["z"]})") == file_metadata{{"x", "y"}});
  CHECK(open("[1, 2]").empty());
}

TEST_CASE("weights that are saved come back to the bit", "[weights]") {
  temporary_folder folder;
  const auto path = folder.path() / "w.safetensors";
  for (const char* name : {"gpt", "mlp", "lenet", "lenet5"}) {
    const auto whole = *make_network<float>({name, 2, 8, 2, 4, 5});
    const auto first = filled(whole, initial_weights(whole, 7));
    CHECK(save_weights(path, whole, readable(first)).empty());
    const auto read = weights_from(path, whole);
    REQUIRE(read.has_value());
    CHECK(filled(whole, *read) == first);
  }
}

TEST_CASE("a GPT's file has Hugging Face's names and orientation", "[weights]") {
  temporary_folder folder;
  const auto path = folder.path() / "w.safetensors";
  const auto whole = tiny_gpt();
  const auto first = filled(whole, initial_weights(whole, 7));
  save_weights(path, whole, readable(first));
  const auto file = safetensors_file::open(path);
  REQUIRE(file.has_value());
  using dims = std::vector<std::int64_t>;
  CHECK(file->find("transformer.h.0.attn.c_attn.weight")->dims == dims{8, 24});
  CHECK(file->find("transformer.h.1.mlp.c_fc.weight")->dims == dims{8, 32});
  CHECK(file->find("transformer.h.1.mlp.c_proj.weight")->dims == dims{32, 8});
  CHECK(file->find("transformer.wpe.weight")->dims == dims{4, 8});
  CHECK(file->find("transformer.ln_f.bias")->dims == dims{8});
  CHECK(file->find("lm_head.weight")->dims == dims{5, 8});
  CHECK(file->tensors().size() == 2 + 2 * 12 + 3);
}

TEST_CASE("a tied head begins as the embedding, and a file holds it once",
          "[weights]") {
  temporary_folder folder;
  const auto path = folder.path() / "w.safetensors";
  const auto whole = tiny_gpt(true), untied = tiny_gpt();
  const auto first = filled(whole, initial_weights(whole, 7)),
             apart = filled(untied, initial_weights(untied, 7));
  const auto at = *whole.tied();
  const auto same = [&](const std::vector<std::vector<float>>& buckets) {
    const auto begin = buckets[at.embedding.layer].begin() + at.embedding.offset;
    return std::equal(begin, begin + 5 * 8,
                      buckets[at.head.layer].begin() + at.head.offset);
  };
  CHECK(same(first));
  CHECK_FALSE(same(apart));
  CHECK(first.front() == apart.front());
  CHECK(save_weights(path, whole, readable(first)).empty());
  const auto file = safetensors_file::open(path);
  REQUIRE(file.has_value());
  CHECK(file->find("lm_head.weight") == nullptr);
  CHECK(file->tensors().size() == 2 + 2 * 12 + 2);
  CHECK(filled(whole, *weights_from(path, whole)) == first);
  CHECK(filled(untied, *weights_from(path, untied)) == first);
}

TEST_CASE("a head that is not the embedding is neither read nor written as tied",
          "[weights]") {
  temporary_folder folder;
  const auto path = folder.path() / "w.safetensors";
  const auto whole = tiny_gpt(true), untied = tiny_gpt();
  auto values = filled(whole, initial_weights(whole, 7));
  CHECK(save_weights(path, untied, readable(values)).empty()); // head is equal
  CHECK(filled(whole, *weights_from(path, whole)) == values);
  const auto before = content_of(path);
  const auto at = *whole.tied();
  auto& changed =
    values[at.head.layer][static_cast<std::size_t>(at.head.offset + at.values - 1)];
  changed = std::nextafter(changed, 1.0F);
  CHECK_THAT(
    save_weights(path, whole, readable(values)),
    ContainsSubstring("first differ at value 39, but are one matrix by --tied"));
  CHECK((content_of(path) == before));
  CHECK(save_weights(path, untied, readable(values)).empty());
  CHECK_THAT(weights_from(path, whole).error(),
             ContainsSubstring("'lm_head.weight' and 'transformer.wte.weight' first "
                               "differ at value 39, but are one matrix by --tied"));
}

TEST_CASE("missing, extra and misshapen tensors are refused by name", "[weights]") {
  temporary_folder folder;
  const auto path = folder.path() / "w.safetensors";
  const auto whole = tiny_gpt();
  const auto first = filled(whole, initial_weights(whole, 7));
  save_weights(path, whole, readable(first));
  const auto refusal = [&](const network<float>& other) {
    return weights_from(path, other).error();
  };
  CHECK_THAT(refusal(*make_network<float>({"gpt", 3, 8, 2, 4, 5})),
             ContainsSubstring("'transformer.h.2.ln_1.weight' is missing"));
  CHECK_THAT(refusal(*make_network<float>({"gpt", 1, 8, 2, 4, 5})),
             ContainsSubstring("no tensor 'transformer.h.1."));
  CHECK_THAT(
    refusal(*make_network<float>({"gpt", 2, 8, 2, 6, 5})),
    ContainsSubstring("'transformer.wpe.weight' is [4, 8]; the model needs [6, 8]"));
  CHECK_THAT(refusal(*make_network<float>({"lenet"})),
             ContainsSubstring("'conv1.weight' is missing"));
}

TEST_CASE("a parameter under two names is refused", "[weights]") {
  temporary_folder folder;
  const auto path = folder.path() / "w.safetensors";
  const std::vector<float> values(4);
  const std::vector<tensor_to_store> both{
    {"wte.weight", {4}, values.data()}, {"transformer.wte.weight", {4}, values.data()}};
  REQUIRE(write_safetensors(path, both).empty());
  CHECK_THAT(weights_from(path, tiny_gpt()).error(),
             ContainsSubstring(
               "'transformer.wte.weight' and 'wte.weight' are for the same parameter"));
}

TEST_CASE("damaged safetensors files are refused whole", "[safetensors]") {
  temporary_folder folder;
  const auto refusal = [](const std::filesystem::path& path) {
    const auto file = safetensors_file::open(path);
    return file ? std::string{"it is sound"} : file.error();
  };
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  CHECK(refusal(with_header(folder, "{" + a + "}", 8)) == "it is sound");
  CHECK(refusal(with_header(folder, R"({"__metadata__":{"x":"y"},)" + a + "}  ", 8))
        == "it is sound");
  CHECK_THAT(refusal(folder.path() / "none"), ContainsSubstring("cannot read"));
  CHECK_THAT(refusal(folder.write("s", "")), ContainsSubstring("it is empty"));
  CHECK_THAT(refusal(folder.write("s", "abc")),
             ContainsSubstring("shorter than the 8 bytes"));
  CHECK_THAT(refusal(with_header(folder, "{}", 0, std::uint64_t{1} << 62)),
             ContainsSubstring("header has 4611686018427387904 bytes"));
  CHECK_THAT(refusal(with_header(folder, "{}", 0, 100)),
             ContainsSubstring("header has 100 bytes"));
  CHECK_THAT(refusal(with_header(folder, "{" + a + "}", 7)),
             ContainsSubstring("lies outside the file"));
  CHECK_THAT(refusal(with_header(folder, "{" + a + "}", 9)),
             ContainsSubstring("after the last tensor"));
  CHECK_THAT(refusal(with_header(folder, "[1]", 0)),
             ContainsSubstring("not a JSON object"));
  CHECK_THAT(refusal(with_header(folder, "{" + a, 8)),
             ContainsSubstring("not a JSON object"));
  CHECK_THAT(refusal(with_header(folder, "{" + a + "," + a + "}", 8)),
             ContainsSubstring("'a' occurs twice"));
  CHECK_THAT(refusal(with_header(folder, R"({"a\n":7})", 0)),
             ContainsSubstring("a control character"));
  const auto b = [](const std::string& type, const std::string& shape,
                    const std::string& offsets) {
    return R"(,"b":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)"
           + offsets + "}}";
  };
  const auto with_b = [&](const std::string& more) {
    return refusal(with_header(folder, "{" + a + more, 16));
  };
  CHECK(with_b(b("F32", "[1,2]", "[8,16]")) == "it is sound");
  CHECK_THAT(with_b(b("F32", "[2]", "[4,12]")), ContainsSubstring("overlaps"));
  CHECK_THAT(with_b(b("F32", "[1]", "[12,16]")), ContainsSubstring("a gap before"));
  CHECK_THAT(with_b(b("F32", "[3]", "[8,16]")),
             ContainsSubstring("8 bytes where its shape"));
  CHECK_THAT(with_b(b("F33", "[2]", "[8,16]")), ContainsSubstring("unknown type"));
  CHECK_THAT(with_b(b("F32", "[-2]", "[8,16]")), ContainsSubstring("whole numbers"));
  CHECK_THAT(with_b(b("F32", "[9223372036854775807,9]", "[8,16]")),
             ContainsSubstring("larger than any memory"));
  CHECK_THAT(with_b(b("F32", "[18446744073709551615]", "[8,16]")),
             ContainsSubstring("larger than any memory"));
  CHECK_THAT(refusal(with_header(folder, "{" + a + b("F32", "[0]", "[0,0]"), 8)),
             ContainsSubstring("it is sound"));
  CHECK_THAT(with_b(b("F32", "[2]", "[16,8]")), ContainsSubstring("outside the file"));
  CHECK_THAT(with_b(R"(,"b":7})"), ContainsSubstring("lacks a dtype"));
}

TEST_CASE("weights that are not finite are neither read nor written", "[weights]") {
  temporary_folder folder;
  const auto path = folder.path() / "w.safetensors";
  const auto whole = tiny_gpt();
  auto values = filled(whole, initial_weights(whole, 7));
  const auto& p = whole.layers[2]->parameter_called("transformer.h.0.mlp.c_fc.weight");
  const auto [bad, text] = GENERATE(std::pair{NAN, "nan"}, std::pair{INFINITY, "inf"},
                                    std::pair{-INFINITY, "-inf"});
  const std::string which =
    "not finite: transformer.h.0.mlp.c_fc.weight[17] is " + std::string{text};
  REQUIRE(save_weights(path, whole, readable(values)).empty());
  const auto before = content_of(path);
  values[2][static_cast<std::size_t>(p.offset) + 17] = bad;
  CHECK_THAT(save_weights(path, whole, readable(values)), ContainsSubstring(which));
  CHECK((content_of(path) == before));
  std::vector<tensor_to_store> tensors;
  for (std::size_t l = 0; l < whole.layers.size(); ++l)
    for (const auto& each : whole.layers[l]->parameters())
      tensors.push_back({each.name, each.dims, values[l].data() + each.offset});
  REQUIRE(write_safetensors(path, tensors).empty());
  CHECK_THAT(weights_from(path, whole).error(),
             ContainsSubstring("weights are " + which));
}

TEST_CASE("the last of many values of a head is compared, too", "[weights]") {
  temporary_folder folder;
  const auto path = folder.path() / "w.safetensors";
  const model_options options{"gpt", 1, 8, 2, 4, 9'000}; // 72,000 in a matrix
  auto tied = options;
  tied.tied = true;
  const auto whole = *make_network<float>(tied), untied = *make_network<float>(options);
  auto values = filled(whole, initial_weights(whole, 7));
  const auto& p = untied.layers.back()->parameter_called("lm_head.weight");
  values.back()[static_cast<std::size_t>(p.offset + p.values()) - 1] += 1;
  REQUIRE(save_weights(path, untied, readable(values)).empty());
  CHECK_THAT(weights_from(path, whole).error(),
             ContainsSubstring("first differ at value 71999"));
}

TEST_CASE("the last of many values is looked at, too", "[weights]") {
  temporary_folder folder;
  const auto whole = *make_network<float>({"mlp", 2, 200}); // 156,800 in a matrix
  auto values = filled(whole, initial_weights(whole, 7));
  const auto& p = whole.layers[0]->parameter_called("fc1.weight");
  values[0][static_cast<std::size_t>(p.offset + p.values()) - 1] = NAN;
  std::vector<tensor_to_store> tensors;
  for (std::size_t l = 0; l < whole.layers.size(); ++l)
    for (const auto& each : whole.layers[l]->parameters())
      tensors.push_back({each.name, each.dims, values[l].data() + each.offset});
  const auto path = folder.path() / "w.safetensors";
  REQUIRE(write_safetensors(path, tensors).empty());
  CHECK_THAT(weights_from(path, whole).error(),
             ContainsSubstring("fc1.weight[156799] is nan"));
}

} // namespace troupe::weights_test
