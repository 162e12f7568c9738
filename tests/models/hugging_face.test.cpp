// SPDX-License-Identifier: BSD-3-Clause
// GPT-2 as Hugging Face stores the model: files that this test lays out byte by byte.

#include "models/hugging_face.hpp"

#include "models/safetensors.hpp"
#include "models/weights.hpp"
#include "tests/file_size_limit.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <csignal>
#include <cstring>
#include <map>

namespace troupe::hugging_face_test {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

// L 2, C 8, H 2, T 4, V 5
const model_options sizes{"gpt", 2, 8, 2, 4, 5};

/// A tensor with the tensor's bytes.
struct tensor {
  std::string type;
  std::vector<std::int64_t> dims;
  std::string bytes;
};

using tensors = std::map<std::string, tensor>;

tensor of_floats(const std::vector<std::int64_t>& dims,
                 const std::vector<float>& values) {
  tensor result{"F32", dims, std::string(values.size() * 4, '\0')};
  std::memcpy(result.bytes.data(), values.data(), result.bytes.size());
  return result;
}

/// Values that no other tensor has.
tensor numbered(int which, const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const auto dim : dims)
    count *= dim;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(which) + static_cast<float>(i) / 1024);
  return of_floats(dims, values);
}

/// The causal mask, ones up to the diagonal, as bytes of a type.
tensor mask(const std::string& type) {
  tensor result{type, {1, 1, 4, 4}, ""};
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 4; ++column) {
      const float value = column <= row ? 1 : 0;
      if (type == "F32")
        result.bytes.append(reinterpret_cast<const char*>(&value), 4);
      else
        result.bytes += column <= row ? '\1' : '\0';
    }
  return result;
}

/// The tensors of openai-community/gpt2's model.safetensors, at other sizes. Names,
/// dims and types are those of that file.
tensors hub_file() {
  tensors result{{"wte.weight", numbered(1, {5, 8})},
                 {"wpe.weight", numbered(2, {4, 8})},
                 {"ln_f.weight", numbered(3, {8})},
                 {"ln_f.bias", numbered(4, {8})}};
  for (const int block : {0, 1}) {
    const auto name = "h." + std::to_string(block) + ".";
    const int first = 20 * (block + 1);
    result[name + "ln_1.weight"] = numbered(first, {8});
    result[name + "ln_1.bias"] = numbered(first + 1, {8});
    result[name + "attn.bias"] = mask("F32");
    result[name + "attn.c_attn.weight"] = numbered(first + 2, {8, 24});
    result[name + "attn.c_attn.bias"] = numbered(first + 3, {24});
    result[name + "attn.c_proj.weight"] = numbered(first + 4, {8, 8});
    result[name + "attn.c_proj.bias"] = numbered(first + 5, {8});
    result[name + "ln_2.weight"] = numbered(first + 6, {8});
    result[name + "ln_2.bias"] = numbered(first + 7, {8});
    result[name + "mlp.c_fc.weight"] = numbered(first + 8, {8, 32});
    result[name + "mlp.c_fc.bias"] = numbered(first + 9, {32});
    result[name + "mlp.c_proj.weight"] = numbered(first + 10, {32, 8});
    result[name + "mlp.c_proj.bias"] = numbered(first + 11, {8});
  }
  return result;
}

/// The file that GPT2LMHeadModel.save_pretrained of transformers 4.2x wrote: a prefix,
/// and masks as registered at that time. Later files have no masks, and some have a
/// head.
tensors with_prefix(const tensors& file, const std::string& mask_type) {
  tensors result;
  for (const auto& [name, t] : file)
    if (!name.ends_with(".attn.bias"))
      result["transformer." + name] = t;
    else if (!mask_type.empty())
      result["transformer." + name] = mask(mask_type);
  if (!mask_type.empty())
    for (const char* block : {"0", "1"})
      result["transformer.h." + std::string{block} + ".attn.masked_bias"] =
        of_floats({}, {-1e4F});
  return result;
}

std::string as_safetensors(const tensors& file) {
  json header{{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const auto& [name, t] : file) {
    const auto begin = data.size();
    data += t.bytes;
    header[name] = {
      {"dtype", t.type}, {"shape", t.dims}, {"data_offsets", {begin, data.size()}}};
  }
  const auto text = header.dump();
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + text + data;
}

/// The bytes of every parameter of the network, by the parameter's name.
std::map<std::string, std::string> loaded(const network<float>& whole,
                                          const weight_source& source) {
  std::map<std::string, std::string> result;
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    std::vector<float> bucket(static_cast<std::size_t>(whole.layers[l]->bucket()));
    source(l, bucket.data());
    for (const auto& p : whole.layers[l]->parameters())
      result[p.name] = {reinterpret_cast<const char*>(bucket.data() + p.offset),
                        static_cast<std::size_t>(p.values()) * 4};
  }
  return result;
}

void check_loads(const tensors& file, const tensors& meant, const tensor& head) {
  temporary_folder folder;
  const auto whole = *make_network<float>(sizes);
  const auto source =
    weights_from(folder.write("model.safetensors", as_safetensors(file)), whole);
  if (!source)
    FAIL(source.error());
  const auto got = loaded(whole, *source);
  CHECK(got.at("lm_head.weight") == head.bytes);
  std::size_t masks = 0;
  for (const auto& [name, t] : meant)
    if (name.ends_with(".attn.bias"))
      ++masks;
    else
      CHECK(got.at("transformer." + name) == t.bytes);
  CHECK(got.size() == meant.size() - masks + 1);
}

json config_in(const std::filesystem::path& folder) {
  std::ifstream file{folder / "config.json"};
  return json::parse(file);
}

/// Parameters of a network, all of them 0.
std::vector<std::vector<float>> zeros_of(const network<float>& whole) {
  std::vector<std::vector<float>> buckets;
  for (const auto& l : whole.layers)
    buckets.emplace_back(static_cast<std::size_t>(l->bucket()));
  return buckets;
}

} // namespace

TEST_CASE("a Hugging Face GPT-2 loads as it is", "[hugging_face]") {
  const auto hub = hub_file();
  check_loads(hub, hub, hub.at("wte.weight"));
  for (const char* type : {"", "F32", "BOOL", "U8"})
    check_loads(with_prefix(hub, type), hub, hub.at("wte.weight"));
  auto untied = with_prefix(hub, "");
  untied["lm_head.weight"] = numbered(9, {5, 8});
  check_loads(untied, hub, untied.at("lm_head.weight"));
}

TEST_CASE("a tied GPT-2 has the head that Hugging Face's has", "[hugging_face]") {
  temporary_folder folder;
  auto options = sizes;
  options.tied = true;
  const auto whole = *make_network<float>(options);
  auto file = hub_file();
  const auto path = folder.write("model.safetensors", as_safetensors(file));
  const auto source = weights_from(path, whole);
  REQUIRE(source.has_value());
  CHECK(loaded(whole, *source).at("lm_head.weight") == file.at("wte.weight").bytes);
  std::vector<std::vector<float>> buckets = zeros_of(whole);
  for (std::size_t l = 0; l < buckets.size(); ++l)
    (*source)(l, buckets[l].data());
  folder.write("config.json",
               R"({"model_type": "gpt2", "tie_word_embeddings": false})");
  CHECK(save_weights(path, whole, readable(buckets)).empty());
  CHECK(config_in(folder.path())["tie_word_embeddings"] == true);
  file = with_prefix(hub_file(), "");
  file["lm_head.weight"] = numbered(9, {5, 8});
  folder.write("model.safetensors", as_safetensors(file));
  CHECK_THAT(
    weights_from(path, whole).error(),
    ContainsSubstring(
      "'lm_head.weight' and 'transformer.wte.weight' first differ at value 0"));
}

namespace {

/// The sizes of `sizes` in the form of GPT2Config.
json config_of_sizes() {
  return {{"model_type", "gpt2"}, {"n_layer", 2},     {"n_embd", 8},
          {"n_head", 2},          {"n_positions", 4}, {"vocab_size", 5}};
}

/// The error of weights_from for the Hub's file beside a config; empty if the file
/// loads.
std::string refusal_beside(const json& config, const model_options& model = sizes,
                           const tensors& file = hub_file(),
                           const std::string& name = "model.safetensors") {
  temporary_folder folder;
  folder.write("config.json", config.dump());
  const auto whole = *make_network<float>(model);
  const auto source = weights_from(folder.write(name, as_safetensors(file)), whole);
  return source ? "" : source.error();
}

std::string refusal_with(const char* key, const json& value) {
  auto config = config_of_sizes();
  config[key] = value;
  return refusal_beside(config);
}

} // namespace

TEST_CASE("a config of the function that troupe computes is taken", "[hugging_face]") {
  CHECK(refusal_beside(config_of_sizes()).empty());
  for (const auto& [key, value] :
       {std::pair<const char*, json>{"activation_function", "gelu_new"},
        {"activation_function", "gelu_pytorch_tanh"},
        {"layer_norm_epsilon", 1e-5},
        {"scale_attn_weights", true},
        {"scale_attn_by_inverse_layer_idx", false},
        {"reorder_and_upcast_attn", true}, // the same function in fp32
        {"add_cross_attention", false},
        {"n_inner", nullptr},
        {"n_inner", 32},
        {"attn_pdrop", 0.1}, // only used in training
        {"resid_pdrop", 0.1},
        {"embd_pdrop", 0.1},
        {"n_positions", 8},
        {"n_ctx", 1024},
        {"use_cache", true},
        {"summary_type", "cls_index"}})
    CHECK(refusal_with(key, value) == "");
}

TEST_CASE("a config's key that asks for another function is refused by its name",
          "[hugging_face]") {
  for (const auto& [key, value] :
       {std::pair<const char*, json>{"activation_function", "gelu"},
        {"activation_function", "relu"},
        {"layer_norm_epsilon", 1e-6},
        {"scale_attn_weights", false},
        {"scale_attn_by_inverse_layer_idx", true},
        {"add_cross_attention", true},
        {"n_inner", 16},
        {"pruned_heads", {{"0", {1}}}},
        {"quantization_config", {{"quant_method", "gptq"}}}})
    CHECK_THAT(refusal_with(key, value),
               ContainsSubstring("config.json: " + std::string{key} + " is "
                                 + value.dump()
                                 + (std::string{key} == "n_inner"
                                      ? "; troupe supports only 4 * n_embd"
                                      : "; troupe computes a GPT-2 only with ")));
  auto bf16 = sizes;
  bf16.stored = precision::bf16;
  auto config = config_of_sizes();
  config["reorder_and_upcast_attn"] = true;
  CHECK_THAT(refusal_beside(config, bf16),
             ContainsSubstring("reorder_and_upcast_attn is true"));
}

TEST_CASE("a config's sizes are held against the options", "[hugging_face]") {
  for (const auto& [key, value, said] :
       {std::tuple<const char*, int, const char*>{"n_head", 4, "n_head is 4"},
        {"num_attention_heads", 4, "n_head is 4"}, // which takes precedence over n_head
        {"n_layer", 3, "--layers 3"},
        {"n_embd", 16, "--d-model 16"},
        {"vocab_size", 50257, "--vocab 50257"},
        {"n_positions", 2, "--seq 2"}})
    CHECK_THAT(refusal_with(key, value), ContainsSubstring(said));
  auto config = config_of_sizes();
  config.erase("n_head"); // GPT2Config then has 12
  CHECK_THAT(refusal_beside(config), ContainsSubstring("n_head is 12"));
  for (const json& value : {json("2"), json(0), json(-2), json(2.5), json(1e300)})
    CHECK_THAT(refusal_with("n_head", value),
               ContainsSubstring("n_head is " + value.dump()
                                 + ", and a whole number above 0 is allowed"));
}

TEST_CASE("a config decides whether a head is the embedding's matrix",
          "[hugging_face]") {
  auto config = config_of_sizes();
  auto other = hub_file();
  other["lm_head.weight"] = numbered(9, {5, 8});
  auto same = hub_file();
  same["lm_head.weight"] = same["wte.weight"];
  CHECK(refusal_beside(config, sizes, same).empty());
  CHECK_THAT(refusal_beside(config, sizes, other),
             ContainsSubstring("'lm_head.weight' and 'wte.weight' first differ")
               && ContainsSubstring("tie_word_embeddings"));
  config["tie_word_embeddings"] = false;
  CHECK(refusal_beside(config, sizes, other).empty());
  CHECK_THAT(refusal_beside(config, sizes, hub_file()),
             ContainsSubstring("'lm_head.weight' is missing")
               && ContainsSubstring("tie_word_embeddings is false"));
}

TEST_CASE("a config of another model is refused beside weights under its name",
          "[hugging_face]") {
  for (const auto& [config, why] :
       {std::pair<json, const char*>{{{"model_type", "llama"}},
                                     R"(model_type is "llama")"},
        {json::object(), "it has no model_type"},
        {json::array({1}), "it is not a JSON object"}}) {
    CHECK_THAT(refusal_beside(config), ContainsSubstring(why));
    CHECK(refusal_beside(config, sizes, hub_file(), "w.safetensors").empty());
  }
  auto heads = config_of_sizes();
  heads["n_head"] = 4;
  CHECK_THAT(refusal_beside(heads, sizes, hub_file(), "w.safetensors"),
             ContainsSubstring("n_head is 4"));
}

TEST_CASE("a config that is a broken link is refused, not passed over",
          "[hugging_face]") {
  temporary_folder folder;
  std::filesystem::create_symlink("config.json", folder.path() / "config.json");
  const auto config = read_config(folder.path() / "model.safetensors", {});
  REQUIRE_FALSE(config);
  CHECK_THAT(config.error(), ContainsSubstring("config.json"));
}

TEST_CASE("weights of troupe under another name have no config", "[hugging_face]") {
  temporary_folder folder;
  const auto whole = *make_network<float>(sizes);
  folder.write("config.json", R"({"model_type": "gpt2", "n_head": 4})");
  const auto path = folder.path() / "w.safetensors";
  const auto buckets = zeros_of(whole);
  CHECK(save_weights(path, whole, readable(buckets), {{"--model", "gpt"}}).empty());
  CHECK(weights_from(path, whole));
}

TEST_CASE("a saved config is of the function that was trained", "[hugging_face]") {
  temporary_folder folder;
  const auto whole = *make_network<float>(sizes);
  auto before = config_of_sizes();
  before.update({{"scale_attn_by_inverse_layer_idx", true},
                 {"scale_attn_weights", false},
                 {"reorder_and_upcast_attn", true},
                 {"add_cross_attention", true},
                 {"activation_function", "relu"},
                 {"layer_norm_epsilon", 1e-6},
                 {"n_inner", 16},
                 {"num_attention_heads", 4},
                 {"pruned_heads", {{"0", {1}}}},
                 {"quantization_config", {{"quant_method", "gptq"}}},
                 {"resid_pdrop", 0.1}});
  folder.write("config.json", before.dump());
  const auto path = folder.path() / "model.safetensors";
  CHECK(save_weights(path, whole, readable(zeros_of(whole))).empty());
  CHECK(weights_from(path, whole));
  const auto config = config_in(folder.path());
  CHECK(config["n_head"] == 2);
  CHECK(config["resid_pdrop"] == 0);
  CHECK(config["scale_attn_weights"] == true);
  CHECK(config["scale_attn_by_inverse_layer_idx"] == false);
  CHECK(config["add_cross_attention"] == false);
  for (const char* key :
       {"num_attention_heads", "reorder_and_upcast_attn", "quantization_config"})
    CHECK_FALSE(config.contains(key));
}

TEST_CASE("what looks like a mask and is none is refused", "[hugging_face]") {
  temporary_folder folder;
  const auto whole = *make_network<float>(sizes);
  for (const char* name : {"h.0.attn.biases", "h.0.mlp.bias", "h.2.ln_1.bias"}) {
    auto file = hub_file();
    file[name] = mask("F32");
    const auto path = folder.write("model.safetensors", as_safetensors(file));
    CHECK_THAT(weights_from(path, whole).error(),
               ContainsSubstring("no tensor '" + std::string{name} + "'"));
  }
}

TEST_CASE("weights in Hugging Face's place come with a config that keeps the head",
          "[hugging_face]") {
  temporary_folder folder;
  const auto whole = *make_network<float>(sizes);
  const auto buckets = zeros_of(whole);
  const auto save = [&](const char* name, const network<float>& of) {
    CHECK(save_weights(folder.path() / name, of, readable(buckets)).empty());
  };
  save("w.safetensors", whole);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "config.json"));
  save("model.safetensors", whole);
  const auto config = config_in(folder.path());
  CHECK(config["tie_word_embeddings"] == false);
  CHECK(config["model_type"] == "gpt2");
  CHECK(config["architectures"] == json::array({"GPT2LMHeadModel"}));
  // GPT2Config's names for sizes that the file's shapes give, and for values that
  // shapes do not give.
  const auto file = *safetensors_file::open(folder.path() / "model.safetensors");
  const auto dims = [&](const char* name) { return file.find(name)->dims; };
  CHECK(config["vocab_size"] == dims("lm_head.weight")[0]);
  CHECK(config["n_embd"] == dims("lm_head.weight")[1]);
  CHECK(config["n_positions"] == dims("transformer.wpe.weight")[0]);
  CHECK(config["n_layer"] == 2);
  CHECK(config["n_head"] == 2);
  CHECK(config["activation_function"] == "gelu_new");
  CHECK(config["layer_norm_epsilon"] == 1e-5);
  CHECK(config["bos_token_id"].is_null()); // the default would be 50256
}

TEST_CASE("weights that cannot be written leave the config of the older ones",
          "[hugging_face]") {
  temporary_folder folder;
  const auto whole = *make_network<float>(sizes);
  const auto buckets = zeros_of(whole);
  folder.write("config.json", R"({"model_type": "gpt2", "n_layer": 12})");
  const auto was = std::signal(SIGXFSZ, SIG_IGN);
  {
    const file_size_limit limit{1000};
    CHECK_THAT(
      save_weights(folder.path() / "model.safetensors", whole, readable(buckets)),
      ContainsSubstring("too large"));
  }
  std::signal(SIGXFSZ, was);
  CHECK(config_in(folder.path())["n_layer"] == 12);
}

TEST_CASE("a config that is there stays what it is but for what the weights say",
          "[hugging_face]") {
  temporary_folder folder;
  const auto path = folder.path() / "model.safetensors";
  const auto write = [&](const std::string& before, const model_options& model) {
    folder.write("config.json", before);
    CHECK(write_config(path, model).empty());
  };
  write(R"({"model_type": "gpt2", "n_layer": 12, "eos_token_id": 3, "mine": [1]})",
        sizes);
  const auto config = config_in(folder.path());
  CHECK(config["tie_word_embeddings"] == false);
  CHECK(config["n_layer"] == 2);
  CHECK(config["eos_token_id"] == 3);
  CHECK(config["mine"] == json::array({1}));
  for (const char* other : {R"({"model_type": "llama"})", "not JSON", "[1]", "{}"}) {
    folder.write("config.json", other);
    CHECK_THAT(write_config(path, sizes), ContainsSubstring("cannot write"));
    CHECK(foreign_config(path, sizes) == write_config(path, sizes));
    std::ifstream file{folder.path() / "config.json"};
    CHECK(std::string{std::istreambuf_iterator<char>{file}, {}} == other);
  }
  std::filesystem::remove(folder.path() / "config.json");
  CHECK(write_config(path, {"moe", 2, 8, 2, 4, 5}).empty());
  CHECK(write_config(path, {"lenet"}).empty());
  CHECK_FALSE(std::filesystem::exists(folder.path() / "config.json"));
}

} // namespace troupe::hugging_face_test
