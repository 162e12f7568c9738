// SPDX-License-Identifier: BSD-3-Clause
// First bytes of files, from the formats' documents and from files of other tools.

#include "models/file_format.hpp"

#include "models/data/text.hpp"
#include "models/data/tokens.hpp"
#include "models/safetensors.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string_view>
#include <vector>

namespace troupe::file_format_test {

using Catch::Matchers::ContainsSubstring;

namespace {

using namespace std::string_view_literals;

/// A local file header of a zip archive with one member.
std::string zip_of(const std::string& member) {
  return "PK\x03\x04" + std::string(22, '\0') + static_cast<char>(member.size())
         + std::string(3, '\0') + member + std::string(40, '\x80');
}

struct known_file {
  std::string content;
  const char* name;
};

const std::vector<known_file> binaries{
  // Files of torch.save since 1.6, of torch.save before, and of pickle.dump with
  // protocol 4.
  {zip_of("archive/data.pkl"), "a PyTorch file, which is a pickle"},
  {zip_of("gpt2/data.pkl"), "a PyTorch file, which is a pickle"},
  {std::string{"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8P\x19.\x80\x02M\xe9"sv},
   "a PyTorch file, which is a pickle"},
  {std::string{"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x05itos"sv},
   "a Python pickle"},
  {zip_of("arr_0.npy"), "a numpy archive (.npz)"},
  {std::string{"\x93NUMPY\x01\x00v\x00{'descr': '<u2'}"sv}, "a numpy file"},
  {std::string{"GGUF\x03\x00\x00\x00\x95\x00\x00\x00"sv}, "a GGUF file"},
  {std::string{"\x89HDF\r\n\x1a\n\x00\x00\x00\x00"sv}, "an HDF5 file"},
  {std::string{"\x08\x08\x12\x07pytorch\x1a\x05"
               "2.3.0:\xc4\x01"sv},
   "an ONNX file"},
  {std::string{"\x1c\x00\x00\x00TFL3\x14\x00\x20\x00"sv}, "a TensorFlow Lite file"},
  {std::string(60, '\xc1') + std::string{"\x57\xfb\x80\x8b\x24\x75\x47\xdb"sv},
   "a TensorFlow checkpoint"},
  {std::string{"\xc6\xd7\x34\x01\x03\x00\x00\x00\x00\x04\x00\x00"sv},
   "a model file of llm.c"}};

const std::vector<known_file> others{
  {zip_of("readme.txt"), "a zip file"},
  {std::string{"\x1f\x8b\x08\x00\x00\x00\x00\x00"sv}, "a gzip file"},
  {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n",
   "a Git LFS pointer"},
  {"\n<!DOCTYPE HTML>\n<html lang=en>", "a web page (HTML)"},
  {"<html><head>", "a web page (HTML)"},
  {"model_checkpoint_path: \"ckpt\"\n", "TensorFlow's list of checkpoints"},
  {"Entry not found", "a text"}};

} // namespace

TEST_CASE("a file that is no weights is called by its format", "[file_format]") {
  const temporary_folder folder;
  for (const auto* const list : {&binaries, &others})
    for (const auto& [content, name] : *list) {
      const auto path = folder.write("w.safetensors", content);
      CHECK_THAT(safetensors_file::open(path).error(),
                 ContainsSubstring("w.safetensors is not a safetensors file: it is "
                                   + std::string{name}));
    }
  const auto config = folder.write("config.json", "{\"model_type\": \"gpt2\"}");
  CHECK_THAT(safetensors_file::open(config).error(),
             ContainsSubstring("config.json is a JSON file without a weight_map"));
}

TEST_CASE("another tool's binary file is no text, and a text in any format is one",
          "[file_format]") {
  const temporary_folder folder;
  const auto refusal = [&](const std::string& content) {
    const auto padded = content + std::string(200, 'x');
    const auto data =
      text_data(folder.write("a", padded), text_order::random, 8, 256, 1);
    return data ? "" : data.error();
  };
  for (const auto& [content, name] : binaries)
    if (std::string_view{name} != "a TensorFlow checkpoint") // known by the last bytes
      CHECK_THAT(refusal(content),
                 ContainsSubstring("a is " + std::string{name} + ", not a text"));
  for (const char* text :
       {"{\"a\": 1}", "<html>", "Emma Woodhouse", "\xc3\xa9t\xc3\xa9"})
    CHECK(refusal(text).empty());
  const std::string tensors{"\x40\x00\x00\x00\x00\x00\x00\x00{\"a\":{"sv};
  CHECK_THAT(refusal(tensors), ContainsSubstring("is a safetensors file, not a text"));
  CHECK_THAT(refusal(std::string{"\x88\xd8\x34\x01\x01\x00\x00\x00"sv}),
             ContainsSubstring("is a token file of llm.c: say tokens:FILE"));
  const auto tokens = folder.write("t.bin", tensors + std::string(200, 'x'));
  CHECK_THAT(token_data(tokens, text_order::random, 8, 50257, 1).error(),
             ContainsSubstring("t.bin is a safetensors file, but tokens are"));
}

} // namespace troupe::file_format_test
