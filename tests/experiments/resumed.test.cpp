// SPDX-License-Identifier: BSD-3-Clause
// A training that resumes from a checkpoint: options taken from the checkpoint, options
// that are refused, and changes that --change allows. Also the evaluation of
// checkpoints.

#include "experiments/options/command_line.hpp"
#include "experiments/options/saved_options.hpp"
#include "experiments/options/setup.hpp"
#include "experiments/options/training_options.hpp"
#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

namespace troupe::resumed_test {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const program_info training{.name = "train",
                            .description = "",
                            .resumes = true,
                            .distributes = true,
                            .defaults = {.schedules = {.names = {"1f1b"}}}};

const std::string tiny = " --d-model 8 --heads 2 --seq 4 --layers 4 --batch 9 "
                         "--microbatches 4 --evaluate-samples 4 --quiet ";
const std::string saving = " --checkpoint c --checkpoint-every 2 --keep 9 ";

std::string some_text() {
  std::string result;
  for (int i = 0; i < 700; ++i)
    result += static_cast<char>('a' + i * i % 23);
  return result;
}

/// The words of a command line.
std::vector<std::string> words_of(const std::string& typed) {
  std::istringstream stream{typed};
  std::vector<std::string> result;
  for (std::string word; stream >> word;)
    result.push_back(word);
  return result;
}

/// Returns train's error before the training; empty if the training would start.
std::string refusal(const std::string& typed) {
  const auto words = words_of("train " + typed);
  std::vector<const char*> arguments;
  for (const auto& word : words)
    arguments.push_back(word.c_str());
  std::stringstream said;
  auto* const before = std::cerr.rdbuf(said.rdbuf());
  const auto o =
    read_command_line(training, static_cast<int>(arguments.size()), arguments.data());
  std::cerr.rdbuf(before);
  if (!o)
    return said.str();
  const auto runs = set_up(*o);
  return runs ? "" : runs.error();
}

ending_of_program run(const temporary_folder& folder, const std::string& typed) {
  auto ran = run_program_in(folder, typed);
  INFO(typed << "\n" << ran.err);
  REQUIRE(ran.exit_code == 0);
  return ran;
}

/// Trains six steps, with checkpoints in c and weights in whole.safetensors.
void train_whole(const temporary_folder& folder, const std::string& options) {
  run(folder, "train --steps 6 --save whole.safetensors" + tiny + options + saving);
}

/// A checkpoint of four steps out of six, on a text.
struct checkpoint_of_text {
  explicit checkpoint_of_text(const std::string& options) {
    text = folder.write("t.txt", some_text()).string();
    train_whole(folder, "--data text:" + text + " " + options);
    fs::remove_all(folder.path() / "c/batch-6");
    resume = "--resume " + (folder.path() / "c").string() + " ";
  }

  temporary_folder folder;
  std::string text, resume;
};

const std::string adamw = "--lr 0.01 --betas 0.8,0.95 --eps 1e-6 --weight-decay 0.1 "
                          "--decay matrices --clip 0.5 --seed 3 ";

} // namespace

TEST_CASE("a resumed training takes from its checkpoint what its command leaves out",
          "[programs][resumed]") {
  const std::string options = GENERATE(
    adamw + "--lr-schedule cosine,warmup=9,floor=0.2 --evaluate-data text:t.txt",
    "--optimizer sgd --momentum 0.8 --lr 0.3 --weight-decay 0.01 --seed 4 "
    "--precision bf16 --lr-schedule constant,warmup=45",
    "--model moe --experts 4 --gate gshard --capacity 0.7 --balance 0.3 "
    "--gate-noise 0.5 --shared-expert --sequence-lengths 4,3 --seed 5 --data-seed 6 "
    "--init-seed 7",
    "--schedule pipedream:lr=0.02,clip=stage --clip 0.1");
  checkpoint_of_text saved{options};
  const auto& folder = saved.folder;
  // A schedule is named again, and so are the schedule's options.
  const std::string again = options.find("pipedream") == std::string::npos
                              ? ""
                              : "--schedule pipedream:clip=stage ";
  const auto rest = run(folder, "train --resume c --save rest.safetensors --quiet "
                                "--microbatches 4 "
                                  + again);
  CHECK_THAT(rest.err, !ContainsSubstring("older version"));
  CHECK((content_of(folder.path() / "rest.safetensors")
         == content_of(folder.path() / "whole.safetensors")));
}

TEST_CASE("a network of another size is named with its option and both sizes",
          "[programs][resumed]") {
  const checkpoint_of_text saved{""};
  const auto weights = (saved.folder.path() / "whole.safetensors").string();
  for (const auto& [option, had, has] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
         {"--d-model", "8", "16"},
         {"--layers", "4", "3"},
         {"--heads", "2", "4"},
         {"--seq", "4", "8"},
         {"--vocab", "256", "300"}}) {
    const auto sizes = option + " " + had + ", and this run has " + has;
    CHECK_THAT(refusal(saved.resume + option + " " + has),
               StartsWith("--resume: ")
                 && ContainsSubstring("c/batch-4 was trained with " + sizes + ": leave "
                                      + option + " out"));
  }
  CHECK_THAT(
    refusal(saved.resume + "--tied"),
    ContainsSubstring("was trained without --tied, and this run is with --tied"));
  CHECK_THAT(refusal("--init " + weights + " --d-model 16"),
             ContainsSubstring(weights
                               + " records --d-model 8, and this command has --d-model "
                                 "16: leave --d-model out"));
}

TEST_CASE("what decides the numbers cannot differ from the checkpoint unsaid",
          "[programs][resumed]") {
  checkpoint_of_text saved{adamw + "--lr-schedule cosine"};
  const auto& folder = saved.folder;
  const auto other = folder.write("other.txt", some_text() + "!").string();
  struct difference {
    std::string typed, had, has, name;
  };
  const std::vector<difference> all{
    {"--lr 0.02", "--lr 0.01", "0.02", "lr"},
    {"--lr-schedule constant", "--lr-schedule cosine", "constant", "lr-schedule"},
    {"--lr-schedule cosine,floor=0.1", "--lr-schedule cosine", "cosine,floor=0.1",
     "lr-schedule"},
    {"--betas 0.9,0.95", "--betas 0.8,0.95", "0.9,0.95", "betas"},
    {"--eps 1e-7", "--eps 1e-06", "1e-07", "eps"},
    {"--weight-decay 0", "--weight-decay 0.1", "0", "weight-decay"},
    {"--decay all", "--decay matrices", "all", "decay"},
    {"--clip 0", "--clip 0.5", "0", "clip"},
    {"--schedule pipedream:clip=stage", "clip of network", "stage", "clip"},
    {"--schedule gpipe:lr=0.5", "--lr 0.01", "0.5", "lr"},
    {"--seed 4", "--seed 3", "4", "seed"},
    {"--data-seed 4", "--seed 3 of the data", "4", "data-seed"},
    {"--precision bf16", "--precision fp32", "bf16", "precision"},
    {"--sequence-lengths 3", "--sequence-lengths none", "3", "sequence-lengths"},
    {"--steps 9", "--steps 6", "9", "steps"},
    {"--data text:" + other, "'text, 700 bytes, XXH3 ", "'text, 701 bytes, XXH3 ",
     "data"},
    {"--data text:" + saved.text + ",order=sequential", "'text, 700 bytes",
     "'text in order, 700 bytes", "data"},
    {"--evaluate-data text:" + other, "'text, 700 bytes",
     "'text as a whole, evaluated on text as a whole, 1401 bytes", "data"},
    {"--data synthetic", "'text, 700 bytes",
     "'synthetic text of seed 3, 4 of 256 words'", "data"},
  };
  for (const auto& [typed, had, has, name] : all) {
    INFO(typed);
    const auto why = refusal(saved.resume + typed);
    CHECK_THAT(why, ContainsSubstring("--resume: ") && ContainsSubstring("c/batch-4"));
    CHECK_THAT(why, ContainsSubstring(had + (name == "data" ? "" : ", and this run")));
    CHECK_THAT(why, ContainsSubstring("this run has " + has));
    CHECK_THAT(why, ContainsSubstring(
                      name == "steps"
                        ? ": the rate's cosine ends at that step, so say --change steps"
                        : " out, or say --change " + name));
    CHECK(refusal(saved.resume + typed + " --change " + name).empty());
    CHECK_FALSE(refusal(saved.resume + typed + " --change balance").empty());
  }
  const auto both = refusal(saved.resume + "--lr 1 --seed 9");
  CHECK_THAT(both, ContainsSubstring("--lr 0.01, and this run has 1; --seed 3, and "
                                     "this run has 9: ")
                     && ContainsSubstring("say --change lr,seed"));
  CHECK(refusal(saved.resume + "--lr 1 --seed 9 --change seed,lr").empty());
  CHECK_THAT(refusal(saved.resume + "--lr 1 --seed 9 --change lr"),
             ContainsSubstring("say --change lr,seed"));
  CHECK_THAT(refusal(saved.resume + "--lr 1 --steps 9"),
             ContainsSubstring(": leave --lr and lr= out; the rate's cosine ends at "
                               "that step; or say --change lr,steps"));
  // The same name with other content.
  folder.write("t.txt", some_text().replace(300, 1, "!"));
  CHECK_THAT(refusal(saved.resume),
             ContainsSubstring(": restore that data, or name other data with --data "
                               "and say --change data"));
  CHECK(refusal(saved.resume + "--change data").empty());
}

TEST_CASE("data of evaluations are other data than the checkpoint's if that is said",
          "[programs][resumed]") {
  const temporary_folder folder;
  const auto held = folder.write("held.txt", some_text() + "!").string();
  const auto other = folder.write("other.txt", some_text() + "!!").string();
  const checkpoint_of_text saved{"--evaluate-data text:" + held};
  CHECK(refusal(saved.resume).empty());
  const auto typed = saved.resume + "--evaluate-data text:" + other;
  CHECK_THAT(refusal(typed), ContainsSubstring("c/batch-4 was trained with the data")
                               && ContainsSubstring("say --change data"));
  CHECK(refusal(typed + " --change data").empty());
  CHECK_FALSE(refusal(typed + " --change seed").empty());
}

TEST_CASE("advice on --change keeps the names that are typed", "[programs][resumed]") {
  const temporary_folder folder;
  run(folder, "train --steps 4 --seed 1" + tiny + saving);
  fs::remove_all(folder.path() / "c/batch-4");
  const auto seed =
    "--steps 4 --seed 7 --resume " + (folder.path() / "c").string() + " --change ";
  // The seed of synthetic data is a part of the data's identity.
  CHECK_THAT(refusal(seed + "seed"), ContainsSubstring("say --change seed,data"));
  CHECK_THAT(refusal(seed + "data"), ContainsSubstring("say --change data,seed"));
  CHECK(refusal(seed + "seed,data").empty());
}

TEST_CASE("a training that has finished its steps says how it trains on",
          "[programs][resumed]") {
  const std::string course = GENERATE("constant", "cosine");
  const temporary_folder folder;
  run(folder, "train --steps 2 --lr-schedule " + course + tiny + saving);
  const auto resume = "--resume " + (folder.path() / "c").string();
  const auto why = refusal(resume);
  CHECK_THAT(why, ContainsSubstring("c/batch-2 has finished its 2 steps: say --steps 3 "
                                    "or more to train on"));
  CHECK(refusal(resume + " --steps 3 --change steps").empty());
  CHECK(refusal(resume + " --steps 3").empty() == (course == "constant"));
  CHECK((why.find("--change steps") == std::string::npos) == (course == "constant"));
  const auto also = refusal(resume + " --change lr");
  CHECK((also.find("--change lr,steps") == also.npos) == (course == "constant"));
  CHECK_THAT(refusal(resume + " --steps 1"),
             ContainsSubstring("was trained for 2 steps, and --steps 1 counts these "
                               "steps too: say --steps 3 or more"));
}

TEST_CASE("a checkpoint in bf16 without a path of its products gets a note",
          "[resumed]") {
  const auto note = [](const std::map<std::string, std::string>& options) {
    return without_bf16_path("c/batch-2", {options, {}}, bf16_path::widen);
  };
  CHECK_THAT(note({{"--precision", "bf16"}}),
             StartsWith("c/batch-2 does not record the training's TROUPE_BF16, and "
                        "this run uses TROUPE_BF16=widen: set the training's value"));
  CHECK(note({{"--precision", "bf16"}, {"TROUPE_BF16", "widen"}}).empty());
  CHECK(note({{"--precision", "fp32"}}).empty());
  CHECK(note({}).empty());
}

TEST_CASE("a network goes on as it was", "[programs][resumed]") {
  checkpoint_of_text saved{"--lr 0.01"};
  CHECK_THAT(refusal(saved.resume + "--heads 4"),
             ContainsSubstring("--heads 2, and this run has 4")
               && ContainsSubstring("leave --heads out"));
  CHECK_THAT(refusal(saved.resume + "--batch 8"), ContainsSubstring("say --batch 9"));
}

TEST_CASE("microbatches that decide the numbers are those of the checkpoint",
          "[programs][resumed]") {
  const std::string options =
    GENERATE("--model moe --experts 4 --gate switch --balance 0",
             "--model moe --experts 4 --gate gshard --capacity 9 --balance 0.3",
             "--sequence-lengths 4,3");
  checkpoint_of_text saved{options + " --microbatch-sizes 3,3,2,1"};
  CHECK(refusal(saved.resume).empty());
  CHECK(refusal(saved.resume + "--microbatches 4 --microbatch-sizes 3,3,2,1").empty());
  const auto other = refusal(saved.resume + "--microbatches 3");
  CHECK_THAT(other, ContainsSubstring("--microbatches 4, and this run has 3")
                      && ContainsSubstring("--microbatch-sizes 3,3,2,1, and this run "
                                           "has none")
                      && ContainsSubstring("say --change microbatch-sizes,"
                                           "microbatches"));
  CHECK_THAT(refusal(saved.resume + "--microbatch-sizes 3,2,2,2"),
             ContainsSubstring("--microbatch-sizes 3,3,2,1, and this run has none"));
  CHECK(
    refusal(saved.resume + "--microbatches 3 --change microbatches,microbatch-sizes")
      .empty());
  run(saved.folder, "train --resume c --save rest.safetensors --quiet");
  CHECK((content_of(saved.folder.path() / "rest.safetensors")
         == content_of(saved.folder.path() / "whole.safetensors")));
}

TEST_CASE("without a flush the number of microbatches is the checkpoint's",
          "[programs][resumed]") {
  const std::string schedule =
    std::string{"--schedule "} + GENERATE("pipedream", "2bw");
  checkpoint_of_text saved{schedule};
  const auto typed = saved.resume + schedule;
  CHECK(refusal(typed).empty());
  CHECK_THAT(refusal(typed + " --microbatches 5"),
             ContainsSubstring("--microbatches 4, and this run has 5"));
  CHECK(refusal(typed + " --microbatches 5 --change microbatches").empty());
  run(saved.folder, "train --resume c --save rest.safetensors --quiet " + schedule);
  CHECK((content_of(saved.folder.path() / "rest.safetensors")
         == content_of(saved.folder.path() / "whole.safetensors")));
}

TEST_CASE("what leaves the numbers' course alone may differ", "[programs][resumed]") {
  checkpoint_of_text saved{"--lr 0.01 --lr-schedule warmup=9"};
  for (const auto* const typed :
       {"", "--steps 5", "--steps 600", "--schedule gpipe", "--schedule pipedream",
        "--stages 2", "--mesh data=2,pipe=2 --exchange zero1", "--mesh tensor=2,pipe=2",
        "--microbatches 8", "--threads 1", "--clock virtual", "--epochs 9",
        "--lr 0.01 --lr-schedule constant,warmup=9", "--recompute stage"}) {
    INFO(typed);
    CHECK(refusal(saved.resume + typed).empty());
  }
  CHECK_THAT(refusal("--change lr"), ContainsSubstring("say --resume too"));
  CHECK_THAT(
    refusal(saved.resume + "--change heads"),
    ContainsSubstring("--change heads: there is no option that can change 'heads'; "
                      "there are data, seed"));
  CHECK_THAT(refusal(saved.resume + "--change lr,"),
             ContainsSubstring("can change ''; there"));
}

TEST_CASE("options are those of the checkpoint whose values are read",
          "[programs][resumed]") {
  checkpoint_of_text saved{"--lr 0.01"};
  const auto& folder = saved.folder;
  run(folder, "train --resume c --lr 0.02 --change lr --steps 5 --checkpoint c "
              "--checkpoint-every 5 --keep 9 --quiet --microbatches 4");
  const auto damage = [&](const std::string& checkpoint) {
    const auto file = "c/" + checkpoint + "/stage-0.safetensors";
    auto content = content_of(folder.path() / file);
    content.back() = static_cast<char>(content.back() ^ 1);
    folder.write(file, content);
  };
  const auto place = (folder.path() / "c").string();
  CHECK(saved_run_of(place)->from == place + "/batch-5");
  CHECK(saved_run_of(place)->options.at("--lr") == "0.02");
  damage("batch-5");
  CHECK(saved_run_of(place)->from == place + "/batch-4");
  CHECK(saved_run_of(place)->options.at("--lr") == "0.01");
  CHECK(refusal(saved.resume).empty());
  damage("batch-4");
  damage("batch-2");
  for (const std::string typed : {"", "--d-model 16"})
    CHECK_THAT(refusal(saved.resume + typed),
               ContainsSubstring(
                 "batch-5/stage-0.safetensors has changed since it was written"));
}

TEST_CASE("a preset of the gate that is given counts", "[programs][resumed]") {
  checkpoint_of_text saved{"--model moe --experts 4 --gate gshard"};
  CHECK(refusal(saved.resume).empty());
  CHECK(refusal(saved.resume + "--gate gshard").empty());
  CHECK_THAT(refusal(saved.resume + "--gate switch"),
             ContainsSubstring("--expert-top-k 2, and this run has 1")
               && ContainsSubstring("--capacity 1, and this run has 1.25"));
}

TEST_CASE("a checkpoint from before options were kept loads, with a sentence",
          "[programs][resumed]") {
  temporary_folder folder;
  fs::copy(fs::path{TROUPE_OLDER_FILES} / "checkpoint_without_options",
           folder.path() / "c", fs::copy_options::recursive);
  const std::string model =
    " --layers 1 --d-model 4 --heads 2 --seq 4 --vocab 7 --quiet ";
  CHECK(run_program_in(folder, "checkpoint c").exit_code == 0);
  const auto next = run(folder, "train --resume c --steps 3 --batch 9 --stages 1 "
                                "--microbatches 3 --json r.json --checkpoint c "
                                "--checkpoint-every 3"
                                  + model);
  CHECK_THAT(next.err,
             ContainsSubstring("train: c/batch-2 was written by an older version of "
                               "troupe, and lacks the training's data and options"));
  const auto results = json::parse(content_of(folder.path() / "r.json"));
  CHECK(results["runs"][0]["steps_before"] == 2);
  fs::remove_all(folder.path() / "c/batch-3");
  const auto evaluated = run(folder, "evaluate --weights c --samples 4" + model);
  CHECK_THAT(evaluated.err,
             ContainsSubstring("evaluate: c/batch-2 was written by an older"));
}

TEST_CASE("a checkpoint is evaluated on the data that it was trained on",
          "[programs][inference][resumed]") {
  checkpoint_of_text saved{"--precision bf16"};
  const auto& folder = saved.folder;
  const auto evaluate = [&](const std::string& typed) {
    run(folder, "evaluate --quiet --json e.json --weights " + typed);
    return json::parse(content_of(folder.path() / "e.json"));
  };
  run(folder, "train --resume c --save w.safetensors --steps 5 --checkpoint c "
              "--checkpoint-every 5 --quiet --microbatches 4");
  const auto from_file = evaluate("w.safetensors");
  const auto from_folder = evaluate("c");
  CHECK(from_folder["loss"] == from_file["loss"]);
  CHECK_THAT(from_folder["data"].get<std::string>(), ContainsSubstring("700 bytes"));
  CHECK(from_folder["options"] == from_file["options"]);
  // Other data is evaluated if the user names that data; changed data is refused.
  CHECK(evaluate("c --data synthetic")["loss"] != from_file["loss"]);
  folder.write("t.txt", some_text().replace(650, 1, "!")); // a held-out byte
  const std::string other = "was trained on 'text, 700 bytes, XXH3 ";
  for (const auto* const weights : {"c", "w.safetensors", "c --seed 5"}) {
    INFO(weights);
    const auto refused =
      run_program_in(folder, std::string{"evaluate --weights "} + weights);
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, ContainsSubstring(other));
  }
  const auto init = "--init " + (folder.path() / "w.safetensors").string();
  CHECK_THAT(refusal(init), ContainsSubstring(other));
  CHECK(refusal(init + " --data text:" + saved.text).empty());
  CHECK(refusal(init + " --data synthetic").empty());
  CHECK(evaluate("c --data text:" + saved.text)["loss"] != from_file["loss"]);
}

TEST_CASE("generate reads the network of a checkpoint from there",
          "[programs][inference][resumed]") {
  checkpoint_of_text saved{"--lr 0.01"};
  const auto text = [&](const std::string& weights) {
    return run(saved.folder,
               "generate --tokens 20 --quiet --json - --weights " + weights)
      .out;
  };
  run(saved.folder, "train --resume c --save w.safetensors --steps 5 --checkpoint c "
                    "--checkpoint-every 5 --quiet --microbatches 4");
  const auto from_folder = json::parse(text("c")),
             from_file = json::parse(text("w.safetensors"));
  CHECK(from_folder["sequences"] == from_file["sequences"]);
}

} // namespace troupe::resumed_test
