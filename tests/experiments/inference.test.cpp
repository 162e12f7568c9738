// SPDX-License-Identifier: BSD-3-Clause
// Tests the programs evaluate and generate from a user's side.

#include "experiments/options/options.hpp"
#include "models/weights.hpp"
#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace troupe::inference_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using nlohmann::json;

namespace {

const std::string tiny = " --layers 4 --d-model 8 --heads 2 --seq 4 --vocab 128 ";
const std::filesystem::path cases = TROUPE_RUNS;

ending_of_program run(const temporary_folder& folder, const std::string& typed) {
  auto ran = run_program_in(folder, typed);
  INFO(typed << "\n" << ran.err);
  REQUIRE(ran.exit_code == 0);
  return ran;
}

json results(const temporary_folder& folder, const std::string& typed) {
  run(folder, typed + " --quiet --json results.json");
  return json::parse(content_of(folder.path() / "results.json"));
}

/// Returns the arguments of a golden training that choose the model and the data.
std::string model_and_data(const json& arguments) {
  const std::vector<std::string> kept{
    "--model", "--layers", "--d-model", "--heads", "--seq",          "--vocab",
    "--data",  "--tied",   "--experts", "--top-k", "--shared-expert"};
  std::string result;
  bool keeps = false;
  for (std::string word : arguments) {
    if (word.starts_with("--"))
      keeps = std::ranges::find(kept, word) != kept.end();
    if (const auto at = word.find("{cases}"); at != std::string::npos)
      word.replace(at, 7, cases.string());
    if (keeps)
      result += " '" + word + "'";
    if (word == "gshard") // the gate's option
      result += " --top-k 2";
  }
  return result;
}

/// Writes a file of weights with such metadata.
void save(const temporary_folder& folder, const file_metadata& says) {
  const auto whole = *make_network<float>({"gpt", 4, 8, 2, 4, 128});
  std::vector<std::vector<float>> buckets;
  for (std::size_t l = 0; l < whole.layers.size(); ++l) {
    buckets.emplace_back(static_cast<std::size_t>(whole.layers[l]->bucket()));
    initial_weights(whole, 1)(l, buckets.back().data());
  }
  REQUIRE(save_weights(folder.path() / "w.safetensors", whole, readable(buckets), says)
            .empty());
}

} // namespace

TEST_CASE("evaluate finds what PyTorch finds for its own final weights",
          "[inference]") {
  const std::string name = GENERATE("gpt_sgd", "gpt_odd", "gpt_tied", "moe_switch",
                                    "moe_gshard", "lenet", "mlp");
  const auto want = json::parse(content_of(cases / name / "expected.json"));
  temporary_folder folder;
  for (const auto* const stages : {"1", "2"}) {
    const auto got = results(
      folder, "evaluate --weights " + (cases / name / "final.safetensors").string()
                + model_and_data(want["arguments"]) + " --stages " + stages);
    INFO(name << ": " << got.dump());
    const double loss = want["evaluation"]["loss"];
    CHECK(std::abs(got["loss"].get<double>() - loss) <= 5e-6 * std::max(1.0, loss));
    if (got["accuracy"].is_null())
      CHECK(std::abs(got["perplexity"].get<double>() - std::exp(loss))
            <= 1e-4 * std::exp(loss));
    else
      CHECK(got["accuracy"] == want["evaluation"]["accuracy"]);
  }
}

TEST_CASE("evaluate finds what train found, by what the file says of itself",
          "[inference]") {
  temporary_folder folder;
  const std::string model = GENERATE(
    "--model gpt" + tiny, "--model gpt --tied --precision bf16" + tiny,
    "--model moe --experts 3 --top-k 2 --shared-expert" + tiny,
    std::string{"--model lenet"}, std::string{"--model mlp --layers 4 --d-model 9"});
  const auto trained =
    results(folder, "train --stages 2 --steps 3 --seed 7 --save "
                    "w.safetensors --checkpoint c --checkpoint-every 3 "
                      + model);
  const auto want = trained["runs"][0]["evaluation"];
  for (const auto* const stages : {"1", "3"}) {
    const auto got = results(folder, std::string{"evaluate --weights w.safetensors "
                                                 "--samples 1000 --stages "}
                                       + stages);
    INFO(model << ": " << got.dump());
    CHECK(got["loss"] == want["loss"]);
    CHECK(got["accuracy"] == want["accuracy"]);
    CHECK(got["stages"].dump() == stages);
  }
  for (const auto& typed : {std::string{}, "--seed 7 " + model}) {
    const auto got = results(folder, "evaluate --weights c --samples 1000 " + typed);
    CHECK(got["loss"] == want["loss"]);
  }
}

TEST_CASE("evaluate prints a row, and says what was evaluated", "[inference]") {
  temporary_folder folder;
  run(folder, "train --stages 2 --steps 1 --quiet --save w.safetensors" + tiny);
  const auto text = run(folder, "evaluate --weights w.safetensors --samples 5");
  CHECK_THAT(text.out,
             ContainsSubstring("gpt of 5584 parameters from w.safetensors")
               && ContainsSubstring("synthetic text") && ContainsSubstring("perplexity")
               && ContainsSubstring("no model of this data can reach a loss below"));
  CHECK(text.err.empty());
  run(folder, "train --model lenet --stages 2 --steps 1 --quiet --save l.safetensors");
  const auto images = run(folder, "evaluate --weights l.safetensors");
  CHECK_THAT(images.out, ContainsSubstring("accuracy") && ContainsSubstring("%"));
}

TEST_CASE("a mistake in what is evaluated or written gets one sentence",
          "[inference]") {
  temporary_folder folder;
  run(folder, "train --stages 2 --steps 1 --quiet --save w.safetensors" + tiny);
  run(folder, "train --model lenet --stages 2 --steps 1 --quiet --save l.safetensors");
  run(folder, "train --stages 1 --layers 1 --d-model 2 --heads 1 --seq 4 --vocab 300 "
              "--steps 1 --quiet --save wide.safetensors");
  folder.write("broken.safetensors", "not a header");
  folder.write("short.txt", "0123456789012345678901");
  const auto whole = content_of(folder.path() / "w.safetensors");
  folder.write("cut.safetensors", whole.substr(0, whole.size() - 4));
  std::filesystem::create_directory(folder.path() / "empty");
  const std::pair<std::string, std::string> mistakes[] = {
    {"evaluate --quiet", "--weights is missing"},
    {"evaluate --weights missing.safetensors", "missing.safetensors"},
    {"evaluate --weights broken.safetensors", "not a safetensors file"},
    {"evaluate --weights cut.safetensors", "not a safetensors file"},
    {"evaluate --weights empty", "empty"},
    {"evaluate --weights w.safetensors --layers 3", "records --layers 4"},
    {"evaluate --weights w.safetensors --d-model 16", "records --d-model 8"},
    {"evaluate --weights w.safetensors --model lenet", "records --model gpt"},
    {"evaluate --weights w.safetensors --stages 5", "at most 4 stages"},
    {"evaluate --weights w.safetensors --samples 0", "--samples"},
    {"evaluate --weights w.safetensors --microbatch-size 0", "--microbatch-size"},
    {"evaluate --weights w.safetensors --data text:short.txt", "holds out no samples"},
    {"evaluate --weights w.safetensors --data text:none.txt", "none.txt"},
    {"evaluate --weights w.safetensors --data mnist:empty", "not on mnist"},
    {"evaluate --weights w.safetensors --json /nowhere/r.json", "/nowhere"},
    {"evaluate --weights w.safetensors --steps 3", "no option '--steps'"},
    {"evaluate --weights w.safetensors --device gpu", "write only cpu, only cuda"},
    {"evaluate --weights w.safetensors --precision tf32",
     "tf32 applies only to products on GPUs"},
    {"generate --quiet", "--weights is missing"},
    {"generate --weights l.safetensors", "only gpt and moe generate text"},
    {"generate --weights w.safetensors --stages 5", "at most 4 stages"},
    {"generate --weights w.safetensors --prompt \xC3\xA4", "token 195 at position 0"},
    {"generate --weights w.safetensors --prompt ''", "at least one token"},
    {"generate --weights w.safetensors --prompt a --prompt-tokens 1",
     "--prompt and --prompt-tokens both give"},
    {"generate --weights w.safetensors --prompt-tokens 1,128",
     "token 128 at position 1"},
    {"generate --weights wide.safetensors", "and no bytes of a text"},
    {"generate --weights w.safetensors --tokens 0", "--tokens"},
    {"generate --weights w.safetensors --temperature -1", "--temperature"},
    {"generate --weights w.safetensors --temperature 0 --top-k 3",
     "leave --top-k or --temperature out"},
    {"generate --weights w.safetensors --sequences 0", "--sequences"},
    {"generate --weights w.safetensors --top-k -1", "--top-k"},
    {"generate --weights w.safetensors --data synthetic", "no option '--data'"},
    {"generate --weights w.safetensors --device cuda", "generate runs only on the CPU"},
  };
  for (const auto& [typed, sentence] : mistakes) {
    const auto wrong = run_program_in(folder, typed);
    INFO(typed << "\n" << wrong.err);
    CHECK(wrong.exit_code == 2);
    CHECK(std::ranges::count(wrong.err, '\n') == 1);
    CHECK_THAT(wrong.err, StartsWith(typed.substr(0, typed.find(' ')) + ": "));
    CHECK_THAT(wrong.err, ContainsSubstring(sentence));
    CHECK(wrong.out.empty());
  }
}

#ifndef TROUPE_SANITIZED // sanitizers take terabytes of addresses
TEST_CASE("what needs more memory than there is says so before it begins",
          "[inference]") {
  temporary_folder folder;
  run(folder, "train --stages 2 --steps 1 --quiet --save w.safetensors" + tiny);
  const std::string typed =
    GENERATE("evaluate --weights w.safetensors --microbatch-size 200000 "
             "--data text:much.txt",
             "generate --weights w.safetensors --sequences 1048576");
  folder.write("much.txt", std::string(10'000'000, 'a'));
  const auto refused = run_program_in(folder, typed, "ulimit -v 600000");
  INFO(refused.err);
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, ContainsSubstring("needs"));
}
#endif

TEST_CASE("a file of weights does not choose where results go", "[inference]") {
  temporary_folder folder;
  save(folder, {{"--layers", "4"},
                {"--d-model", "8"},
                {"--heads", "2"},
                {"--seq", "4"},
                {"--vocab", "128"},
                {"--json", "stolen.json"},
                {"--weights", "other"},
                {"--samples", "3"},
                {"samples", "2"}});
  const auto got = results(folder, "evaluate --weights w.safetensors");
  CHECK(got["samples"] > 3);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "stolen.json"));
}

TEST_CASE("options go before what a file of weights says, which may be nonsense",
          "[inference]") {
  temporary_folder folder;
  save(folder, {{"--layers", "four"},
                {"--d-model", "8"},
                {"--heads", "4"},
                {"--seq", "4"},
                {"--vocab", "128"}});
  const auto wrong = run_program_in(folder, "evaluate --weights w.safetensors");
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, ContainsSubstring("w.safetensors records --layers four"));
  const auto mended = results(folder, "evaluate --weights w.safetensors --layers 4");
  CHECK(mended["options"]["--layers"] == "4");
  const auto other =
    run_program_in(folder, "evaluate --weights w.safetensors --layers 4 --heads 2");
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, ContainsSubstring("w.safetensors records --heads 4"));
  save(folder, {{"--data", "synthetic"}, {"data_identity", "{\"kind\": 3}"}});
  CHECK_THAT(run_program_in(folder, "evaluate --weights w.safetensors").err,
             ContainsSubstring("w.safetensors: its data_identity is damaged"));
}

TEST_CASE("a checkpoint is evaluated as the network that it records", "[inference]") {
  temporary_folder folder;
  run(folder,
      "train --stages 2 --steps 2 --quiet --checkpoint c --checkpoint-every 2" + tiny);
  const auto other = run_program_in(folder, "evaluate --weights c --heads 4");
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, ContainsSubstring("records --heads")
                          && ContainsSubstring("leave --heads out"));
}

TEST_CASE("checkpoints are of one schedule", "[inference]") {
  temporary_folder folder;
  const auto two = run_program_in(folder, "train --schedules 1f1b,pipedream --steps 2 "
                                          "--checkpoint c --checkpoint-every 1"
                                            + tiny);
  CHECK(two.exit_code == 2);
  CHECK_THAT(two.err, ContainsSubstring("--checkpoint takes the checkpoints of one "
                                        "schedule"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "c"));
}

TEST_CASE("saved weights are evaluated on the data that their training evaluated",
          "[inference]") {
  temporary_folder folder;
  folder.write("t.txt", std::string(200, 'a'));
  folder.write("v.txt", std::string(60, 'b') + std::string(60, 'c'));
  const std::string sets = " --data text:t.txt --evaluate-data text:v.txt";
  run(folder, "train --stages 2 --steps 2 --quiet --save w.safetensors" + sets + tiny);
  const std::string evaluate = "evaluate --weights w.safetensors ";
  const auto both = results(folder, evaluate);
  CHECK(both["samples"] == 29); // 119 / 4
  CHECK(both["data"] == "text t.txt, 200 bytes; evaluated on text v.txt, 120 bytes");
  const auto alone = results(folder, evaluate + "--evaluate-data text:v.txt");
  CHECK(alone["loss"] == both["loss"]);
  CHECK(alone["data"] == "text v.txt, 120 bytes");
  CHECK(results(folder, evaluate + "--data text:t.txt")["samples"] == 4); // a tenth
  CHECK_THAT(
    run_program_in(folder, evaluate + "--data text:v.txt --evaluate-data text:v.txt")
      .err,
    ContainsSubstring("--data has no effect, as --evaluate-data names"));
  folder.write("v.txt", std::string(120, 'b'));
  const auto wrong = run_program_in(folder, evaluate);
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.err, ContainsSubstring("w.safetensors was trained on ")
                          && ContainsSubstring("--evaluate-data text:v.txt is now "));
}

TEST_CASE("generate writes the same text in any stages, behind its prompt",
          "[inference]") {
  temporary_folder folder;
  run(folder,
      "train --stages 2 --steps 1 --seed 5 --quiet --save w.safetensors" + tiny);
  const std::string any = "generate --weights w.safetensors --prompt ab --tokens 12 ",
                    typed = any + "--seed 3";
  const auto text = run(folder, typed);
  CHECK_THAT(text.out, StartsWith("ab"));
  CHECK(text.out.size() == 2 + 12 + 1);
  CHECK_THAT(text.err, ContainsSubstring("12 tokens in"));
  CHECK(run(folder, typed + " --stages 4").out == text.out);
  CHECK(run(folder, any + "--seed 4").out != text.out);
  CHECK(results(folder, any)["seed"] == 1); // the file's seed is the data's seed
  const auto many = results(folder, typed + " --sequences 3 --stages 2");
  REQUIRE(many["sequences"].size() == 3);
  CHECK(many["tokens"] == 36);
  for (const auto& one : many["sequences"])
    CHECK(one["tokens"].size() == 14);
  const std::vector<std::int32_t> first = many["sequences"][0]["tokens"];
  CHECK(std::string(first.begin(), first.end()) + "\n" == text.out);
  const auto numbers = run(folder, "generate --weights w.safetensors --prompt-tokens "
                                   "97,98 --tokens 12 --seed 3");
  CHECK_THAT(numbers.out, StartsWith("97 98 " + std::to_string(first[2]) + " "));
}

TEST_CASE("generate reads the end of a prompt that is longer than a sequence",
          "[inference]") {
  temporary_folder folder;
  run(folder, "train --stages 2 --steps 1 --quiet --save w.safetensors" + tiny);
  const auto whole = run(folder, "generate --weights w.safetensors --prompt bcde"),
             longer = run(folder, "generate --weights w.safetensors --prompt abcde");
  CHECK(longer.out == "a" + whole.out);
  CHECK_THAT(longer.err, StartsWith("generate: the prompt has 5 tokens, and the model "
                                    "reads only the last 4, its --seq"));
  CHECK_THAT(whole.err, !ContainsSubstring("prompt"));
}

TEST_CASE("generate reads moe's file and a checkpoint", "[inference]") {
  temporary_folder folder;
  const std::string moe = " --model moe --experts 3" + tiny;
  run(folder, "train --stages 2 --steps 2 --quiet --gate gshard --save w.safetensors "
              "--checkpoint c --checkpoint-every 2"
                + moe);
  const auto file = run(folder, "generate --weights w.safetensors --tokens 6");
  const auto checkpoint =
    run(folder, "generate --weights c --tokens 6 --expert-top-k 2" + moe);
  CHECK(file.out == checkpoint.out);
}

} // namespace troupe::inference_test
