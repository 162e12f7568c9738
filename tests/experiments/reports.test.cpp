// SPDX-License-Identifier: BSD-3-Clause
// Files from other people's tools, given to the programs as a user would give the files
// (tests/golden/reports).

#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>

namespace troupe::reports_test {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

const std::string inputs = TROUPE_GOLDEN "/reports";

/// The options for which judge_gpt2.py computed the loss, except --heads, --data and
/// --init.
const std::string judged =
  "compare --quiet --layers 2 --d-model 16 --seq 8 --vocab 37 --stages 2 --batch 4 "
  "--microbatches 2 --steps 1 --lr 0 --weight-decay 0 --schedules gpipe --json r.json ";

/// A copy of the input files, where programs may write.
class copied_inputs {
public:
  copied_inputs() {
    fs::copy(inputs, path(), fs::copy_options::recursive);
    fs::copy_file(path() / "gpt2-config-inverse/model.safetensors",
                  path() / "gpt2-config-heads/model.safetensors");
  }

  fs::path path() const { return folder_.path() / "inputs"; }

  ending_of_program run(const std::string& typed) const {
    return run_program_in(folder_, typed);
  }

  /// Returns the loss of the initial weights on held-out samples.
  double loss(const std::string& options) const {
    const auto ran = run(judged + options);
    INFO(ran.err);
    REQUIRE(ran.exit_code == 0);
    const auto results = json::parse(content_of(folder_.path() / "r.json"));
    return results["runs"][0]["evaluation"]["loss"];
  }

  std::string refusal(const std::string& options) const {
    const auto ran = run(judged + options);
    CHECK(ran.exit_code == 2);
    return ran.err;
  }

private:
  temporary_folder folder_;
};

const std::string tokens = " --data tokens:inputs/tokens-u16.bin ",
                  plain = " --heads 2 --init inputs/gpt2-plain.safetensors ";

constexpr double rounding = 1e-5;

} // namespace

TEST_CASE("a GPT-2 of other tools has the loss that is computed elsewhere",
          "[reports]") {
  const copied_inputs files;
  CHECK(std::abs(files.loss(tokens + plain) - 3.6804241) < rounding);
}

TEST_CASE("a GPT-2 in other files has the loss that is computed elsewhere",
          "[reports]") {
  const copied_inputs files;
  const auto loss = [&](const std::string& init) {
    return files.loss(tokens + "--heads 2 --init inputs/" + init);
  };
  CHECK(std::abs(loss("gpt2-f16.safetensors") - 3.680443) < rounding);
  CHECK(std::abs(loss("gpt2-orig_mod-prefix.safetensors") - 3.6804241) < rounding);
  CHECK(std::abs(loss("gpt2-16-positions.safetensors") - 3.6804241) < rounding);
  for (const char* sharded :
       {"sharded-gpt2", "sharded-gpt2/model.safetensors.index.json"})
    CHECK(std::abs(loss(sharded) - 3.6804241) < rounding);
  const auto longer = files.run(
    judged + tokens + "--heads 2 --init inputs/gpt2-16-positions.safetensors");
  CHECK_THAT(longer.err, ContainsSubstring(
                           "compare: inputs/gpt2-16-positions.safetensors: the first "
                           "8 of 16 positions of tensor 'wpe.weight' are used"));
  const auto evaluated =
    files.run("evaluate --json - --layers 2 --d-model 16 --heads 2 --seq 8 --vocab 37 "
              "--weights inputs/sharded-gpt2"
              + tokens);
  CHECK(std::abs(json::parse(evaluated.out)["loss"].get<double>() - 3.6804241)
        < rounding);
  fs::remove(files.path() / "sharded-gpt2/model-00002-of-00002.safetensors");
  CHECK_THAT(files.refusal(tokens + "--heads 2 --init inputs/sharded-gpt2"),
             ContainsSubstring("model-00002-of-00002.safetensors: No such file"));
  CHECK_THAT(
    files.refusal(tokens + "--heads 2 --init inputs/git-lfs-pointer.safetensors"),
    ContainsSubstring("is a Git LFS pointer: fetch"));
}

TEST_CASE("a GPT-2's config decides what is computed", "[reports]") {
  const copied_inputs files;
  const std::string heads = " --init inputs/gpt2-config-heads/model.safetensors ";
  CHECK(std::abs(files.loss(tokens + heads) - 14.28250) < rounding);
  CHECK_THAT(files.refusal(tokens + heads + "--heads 2"),
             ContainsSubstring("config.json: n_head is 4, and --heads is 2: say "
                               "--heads 4, or leave --heads out"));
  CHECK_THAT(
    files.refusal(tokens + "--init inputs/gpt2-config-inverse/model.safetensors"),
    ContainsSubstring("scale_attn_by_inverse_layer_idx is true"));
  const auto evaluated = files.run("evaluate --json - --weights "
                                   "inputs/gpt2-config-heads/model.safetensors"
                                   + tokens);
  CHECK(evaluated.exit_code == 0);
  CHECK(std::abs(json::parse(evaluated.out)["loss"].get<double>() - 14.28250)
        < rounding);
}

TEST_CASE("weights of --init decide the model's options that are left out",
          "[reports]") {
  const copied_inputs files;
  const std::string train = "train --quiet --stages 1 --steps 1 --lr 0 " + tokens;
  REQUIRE(files
            .run(train
                 + "--init inputs/gpt2-config-heads/model.safetensors --save "
                   "inputs/gpt2-config-heads/saved.safetensors")
            .exit_code
          == 0);
  const std::string saved = " --init inputs/gpt2-config-heads/saved.safetensors ";
  CHECK(std::abs(files.loss(tokens + saved) - 14.28250) < rounding);
  CHECK_THAT(files.refusal(tokens + saved + "--heads 2"),
             ContainsSubstring("saved.safetensors records --heads 4, and this command "
                               "has --heads 2: leave --heads out"));
  // The config has changed since then, and the user has given no number.
  const auto folder = files.path() / "gpt2-config-heads";
  fs::copy_file(folder / "saved.safetensors", folder / "model.safetensors",
                fs::copy_options::overwrite_existing);
  auto config = json::parse(content_of(folder / "config.json"));
  config["n_head"] = 2;
  std::ofstream{folder / "config.json"} << config;
  const auto weights = "inputs/gpt2-config-heads/model.safetensors";
  for (const auto& wrong :
       {files.refusal(tokens + "--init " + weights),
        files.run(std::string{"evaluate --weights "} + weights + tokens).err})
    CHECK_THAT(
      wrong,
      ContainsSubstring(
        "config.json records n_head 2, and inputs/gpt2-config-heads/model.safetensors "
        "records --heads 4: correct or remove"));
  CHECK_THAT(files.run(train + saved + "--heads 8 --save w.safetensors").err,
             ContainsSubstring("leave --heads out"));
}

TEST_CASE("a folder whose config is of another model gets no GPT-2's weights",
          "[reports]") {
  const copied_inputs files;
  std::ofstream{files.path() / "config.json"} << R"({"model_type": "llama"})";
  const auto ran = files.run("train --quiet --steps 1 --d-model 8 --heads 2 --seq 4 "
                             "--vocab 7 --save inputs/model.safetensors");
  CHECK(ran.exit_code == 2); // before the first step
  CHECK_THAT(ran.err, ContainsSubstring(R"(its model_type is "llama")"));
  CHECK_FALSE(fs::exists(files.path() / "model.safetensors"));
}

TEST_CASE("token files of other tools have the loss that is computed elsewhere",
          "[reports]") {
  const copied_inputs files;
  for (const char* name : {"tokens-llmc-v1.bin", "tokens-u32-no-header.bin,width=32"})
    CHECK(std::abs(files.loss(plain + "--data tokens:inputs/" + name) - 3.6804241)
          < rounding);
  CHECK_THAT(files.refusal(plain + "--data tokens:inputs/tokens-u32-no-header.bin"),
             ContainsSubstring("width=32"));
  CHECK_THAT(files.refusal(plain + "--data tokens:inputs/tokens-u16.npy"),
             ContainsSubstring("is a numpy file"));
}

TEST_CASE(
  "a schedule in PyTorch 2.5's notation takes the time that is computed elsewhere",
  "[reports]") {
  const copied_inputs files;
  const auto ran =
    files.run("simulate --quiet --json - --cost F=1,B=2,I=1,W=1 --steps 1 --schedules "
              "file:inputs/pytorch-2.5-notation.csv");
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const auto makespan = json::parse(ran.out)["runs"][0]["makespan"].get<double>();
  CHECK(std::abs(makespan - 0.013) < 1e-9); // judge_schedule.py's 13 units, in seconds
}

TEST_CASE("tokens in several files, and in a file for evaluations, have that loss too",
          "[reports]") {
  const copied_inputs files;
  const auto all = content_of(files.path() / "tokens-u16.bin");
  const auto write = [&](const char* name, std::size_t first, std::size_t count) {
    std::ofstream{files.path() / name, std::ios::binary}
      << all.substr(2 * first, 2 * count);
  };
  write("part_1.bin", 0, 500);
  write("part_2.bin", 500, 420); // the last 100 values are held out
  write("part_3.bin", 920, 83);
  CHECK(std::abs(files.loss(plain + "--data tokens:inputs/part_*.bin") - 3.6804241)
        < rounding);
  write("held_out.bin", 903, 100);
  const std::string evaluated = " --evaluate-data tokens:inputs/held_out.bin ";
  CHECK(
    std::abs(files.loss(plain + "--data tokens:inputs/tokens-llmc-v1.bin" + evaluated)
             - 3.6804241)
    < rounding);
  const auto scored =
    files.run("evaluate --json - --layers 2 --d-model 16 --heads 2 --seq 8 --vocab 37 "
              "--weights inputs/gpt2-plain.safetensors"
              + evaluated);
  INFO(scored.err);
  CHECK(std::abs(json::parse(scored.out)["loss"].get<double>() - 3.6804241) < rounding);
}

TEST_CASE("a run says how many files of a text's folder it reads", "[reports]") {
  const copied_inputs files;
  const auto ran = files.run("train --steps 1 --d-model 8 --heads 2 --seq 4 --data "
                             "text:inputs/text-folder");
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out,
             ContainsSubstring("(1 file read, 1 left out: .DS_Store), 1800 bytes"));
}

} // namespace troupe::reports_test
