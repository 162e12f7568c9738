// SPDX-License-Identifier: BSD-3-Clause
// Checkpoints from a user's side: runs that resume from one, damaged checkpoints, and
// runs that are killed.

#include "tests/experiments/checkpointed.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace troupe::checkpoints_test {

using namespace checkpointed;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

TEST_CASE("a training goes on from a checkpoint to the file that it would have saved",
          "[programs]") {
  const auto* const how = GENERATE(
    "--schedule 1f1b --stages 2 --clip 0.5", "--schedule pipedream --stages 4",
    "--schedule 2bw --mesh data=2,pipe=2 --exchange zero1 --microbatches 8 --batch 18",
    "--schedule ampnet --stages 2 --clock virtual");
  // The later --batch and --microbatches would be second values of these options.
  auto common = tiny_model + how;
  if (common.find("--batch 18") != std::string::npos) {
    common.erase(common.find("--batch 9 "), 10);
    common.erase(common.find("--microbatches 4 "), 17);
  }
  temporary_folder folder;
  REQUIRE(
    run_program_in(folder, "train --steps 6 --save whole.safetensors" + common + saving)
      .exit_code
    == 0);
  fs::remove_all(folder.path() / "c/batch-6");
  const bool pauses = common.find("ampnet") != std::string::npos; // with checkpoints
  const auto rest =
    run_program_in(folder, "train --steps 6 --save rest.safetensors --resume c" + common
                             + (pauses ? saving : ""));
  INFO(rest.err);
  CHECK(rest.exit_code == 0);
  CHECK((content_of(folder.path() / "rest.safetensors")
         == content_of(folder.path() / "whole.safetensors")));
  const auto run =
    nlohmann::json::parse(content_of(folder.path() / "r.json"))["runs"][0];
  CHECK(run["steps"] == 6);
  CHECK(run["loss_samples"].back()
        == (pauses || common.find("18") == std::string::npos ? 54 : 108));
  CHECK(run["steps_before"] == 4);
}

TEST_CASE("a checkpoint that is broken is passed over, and said to be", "[programs]") {
  temporary_folder folder;
  const auto c = folder.path() / "c";
  REQUIRE(
    run_program_in(folder, "train --steps 4 --stages 2" + tiny_model + saving).exit_code
    == 0);
  CHECK(run_program_in(folder, "checkpoint c").exit_code == 0);
  const auto moment = c / "batch-4/stage-1.safetensors";
  const auto bytes = static_cast<std::int64_t>(fs::file_size(moment));
  const auto [name, breaks] = GENERATE_COPY(
    std::pair<std::string, int>{"cut short", 0}, std::pair<std::string, int>{"flip", 1},
    std::pair<std::string, int>{"no file", 2},
    std::pair<std::string, int>{"half a manifest", 3},
    std::pair<std::string, int>{"a manifest that names other files", 4},
    std::pair<std::string, int>{"a FIFO", 5});
  INFO(name);
  switch (breaks) {
  case 0:
    fs::resize_file(moment, static_cast<std::uintmax_t>(bytes - 1));
    break;
  case 1:
    flip(moment, bytes - 3);
    break;
  case 2:
    fs::remove(moment);
    break;
  case 3:
    fs::resize_file(c / "batch-4/manifest.json", 90);
    break;
  case 5:
    fs::remove(moment);
    REQUIRE(mkfifo(moment.c_str(), 0600) == 0);
    break;
  default: {
    auto manifest = content_of(c / "batch-4/manifest.json");
    manifest.replace(manifest.find("stage-1.safetensors"), 7, "../secre");
    folder.write("c/batch-4/manifest.json", manifest);
  }
  }
  const auto shown = run_program_in(folder, "checkpoint c");
  CHECK(shown.exit_code == 1);
  CHECK_THAT(shown.err, ContainsSubstring("c/batch-4/"));
  CHECK((shown.err.find("is not a regular file") != shown.err.npos) == (breaks == 5));
  CHECK_THAT(shown.out, ContainsSubstring("c/batch-2: 2 steps"));
  const auto next =
    run_program_in(folder, "train --steps 5 --stages 2 --resume c" + tiny_model);
  CHECK(next.exit_code == 0);
  CHECK_THAT(next.err, ContainsSubstring("checkpoint skipped: c/batch-4/"));
  const auto run =
    nlohmann::json::parse(content_of(folder.path() / "r.json"))["runs"][0];
  CHECK(run["steps_before"] == 2);
}

TEST_CASE("a folder of another training's checkpoints is not written to",
          "[programs]") {
  temporary_folder folder;
  const auto train = "train --steps 4 --stages 2" + tiny_model + saving;
  REQUIRE(run_program_in(folder, train).exit_code == 0);
  const auto again = run_program_in(folder, train);
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, ContainsSubstring("c has checkpoints of another training"));
  folder.write("c/batch-4/manifest.json", "{"); // broken
  fs::create_directories(folder.path() / "c/batch-9.unfinished");
  const auto longer = run_program_in(folder, "train --steps 3 --stages 2 --resume c"
                                               + tiny_model + saving);
  INFO(longer.err);
  CHECK(longer.exit_code == 0);
  CHECK(fs::exists(folder.path() / "c/batch-3"));
  CHECK_FALSE(fs::exists(folder.path() / "c/batch-4"));
  CHECK_FALSE(fs::exists(folder.path() / "c/batch-9.unfinished"));
}

TEST_CASE("what is no checkpoint stays as it is", "[programs]") {
  temporary_folder folder;
  const auto c = folder.path() / "c";
  fs::create_directories(c / "batch-1");
  fs::create_directories(c / "batch-7.unfinished");
  folder.write("c/batch-1/mine.txt", "data");
  folder.write("c/batch-7.unfinished/mine.txt", "data");
  folder.write("c/batch-3", "data");
  folder.write("c/batch-99999999999", "data");
  REQUIRE(run_program_in(folder, "train --steps 2 --stages 2 --checkpoint good "
                                 "--checkpoint-every 2"
                                   + tiny_model)
            .exit_code
          == 0);
  fs::create_symlink("../good/batch-2", c / "batch-2");
  const auto train = "train --steps 6 --stages 2 --resume c --checkpoint c "
                     "--checkpoint-every 2 --keep 1"
                     + tiny_model;
  CHECK(run_program_in(folder, train).exit_code == 0);
  CHECK(run_program_in(folder, "checkpoint good").exit_code == 0);
  CHECK_FALSE(fs::exists(c / "batch-4"));
  for (const auto* const mine : {"batch-1/mine.txt", "batch-7.unfinished/mine.txt",
                                 "batch-3", "batch-99999999999"})
    CHECK(content_of(c / mine) == "data");

  const auto in_the_way =
    run_program_in(folder, "train --steps 7 --stages 2 --resume c --checkpoint c "
                           "--checkpoint-every 1"
                             + tiny_model);
  CHECK(in_the_way.exit_code == 0);
  fs::create_directories(c / "batch-8");
  folder.write("c/batch-8/mine.txt", "data");
  const auto stopped =
    run_program_in(folder, "train --steps 8 --stages 2 --resume c --checkpoint c "
                           "--checkpoint-every 1"
                             + tiny_model);
  CHECK(stopped.exit_code == 2); // before a step is trained
  CHECK_THAT(stopped.err, ContainsSubstring("batch-8 is no checkpoint"));
  CHECK(content_of(c / "batch-8/mine.txt") == "data");
}

TEST_CASE("no checkpoint is removed or replaced that may be whole", "[programs]") {
  temporary_folder folder;
  const auto c = folder.path() / "c";
  const auto train = [&](int steps, const std::string& more) {
    return run_program_in(folder, "train --stages 2 --steps " + std::to_string(steps)
                                    + tiny_model + " --checkpoint c " + more);
  };
  REQUIRE(train(8, "--checkpoint-every 1 --keep 9").exit_code == 0);
  fs::rename(c / "batch-1", c / "batch-30"); // by the user
  fs::rename(c / "batch-5", c / "batch-1");
  folder.write("c/batch-2/manifest.json", R"({"name": "of another program"})");
  folder.write("c/batch-3/manifest.json", R"({"troupe_checkpoint": 4})");
  // Links in a cycle stand for a file that the system cannot read now.
  fs::remove(c / "batch-7/stage-0.safetensors");
  fs::create_symlink("stage-0.safetensors", c / "batch-7/stage-0.safetensors");
  fs::resize_file(c / "batch-8/stage-0.safetensors", 9); // broken
  const auto next = train(7, "--checkpoint-every 9 --keep 1 --resume c");
  CHECK(next.exit_code == 2);
  CHECK_THAT(next.err,
             ContainsSubstring("--checkpoint would replace c/batch-7, but cannot read ")
               && ContainsSubstring("Too many levels of symbolic links: name another"));
  fs::rename(c / "batch-7", c / "batch-20");
  const auto more = train(7, "--checkpoint-every 9 --keep 1 --resume c");
  INFO(more.err);
  CHECK(more.exit_code == 0);
  CHECK_THAT(more.err,
             ContainsSubstring("records 1 batches, and a folder batch-N must "
                               "have N batches: move c/batch-30 to another place, as "
                               "batch-1 exists")
               && ContainsSubstring("rename c/batch-20 to batch-7"));
  for (const int stays : {1, 2, 3, 7, 20, 30}) {
    const auto name = "batch-" + std::to_string(stays);
    INFO(name);
    CHECK(fs::exists(c / name / "manifest.json"));
    CHECK(fs::exists(c / name / "stage-1.safetensors"));
  }
  for (const auto* const removed : {"batch-4", "batch-6", "batch-8"})
    CHECK_FALSE(fs::exists(c / removed));
}

TEST_CASE("a folder without a manifest is told, and refused where it is in the way",
          "[programs]") {
  temporary_folder folder;
  const auto c = folder.path() / "c";
  fs::create_directories(c / "batch-3");
  folder.write("c/batch-3/stage-0.safetensors", "half");
  const auto train = [&](int steps, const std::string& more) {
    return run_program_in(folder, "train --stages 2 --steps " + std::to_string(steps)
                                    + " --checkpoint c --checkpoint-every 2 " + more
                                    + tiny_model);
  };
  const std::string skipped =
    "checkpoint skipped: c/batch-3 has no manifest.json, and is no checkpoint";
  const auto first = train(2, "--resume auto");
  CHECK(first.exit_code == 0);
  CHECK_THAT(first.err, ContainsSubstring(skipped));
  for (const auto* const resume : {"--resume auto", "--resume c"}) {
    const auto stopped = train(3, resume);
    CHECK(stopped.exit_code == 2);
    CHECK_THAT(stopped.err, ContainsSubstring("c/batch-3 is no checkpoint, but has the "
                                              "name of a new checkpoint: rename it"));
    CHECK_THAT(
      run_program_in(folder, "train --stages 2 --steps 3 " + tiny_model + "--resume c")
        .err,
      ContainsSubstring(skipped));
  }
  CHECK_THAT(train(4, "--resume auto").err, ContainsSubstring(skipped));
  CHECK_THAT(train(5, "--resume auto").err, !ContainsSubstring("skipped")); // older
  CHECK(content_of(c / "batch-3/stage-0.safetensors") == "half");
  fs::create_directories(folder.path() / "d/batch-9");
  CHECK_THAT(run_program_in(folder, "train --resume d" + tiny_model).err,
             ContainsSubstring("there is no checkpoint in d: d/batch-9 has no "
                               "manifest.json"));
}

TEST_CASE("as many checkpoints stay as are to be kept", "[programs]") {
  temporary_folder folder;
  REQUIRE(run_program_in(folder, "train --steps 7 --stages 2 --checkpoint c "
                                 "--checkpoint-every 2 --keep 2"
                                   + tiny_model)
            .exit_code
          == 0);
  CHECK(fs::exists(folder.path() / "c/batch-7"));
  CHECK(fs::exists(folder.path() / "c/batch-6"));
  CHECK_FALSE(fs::exists(folder.path() / "c/batch-4"));
  CHECK(run_program_in(folder, "train --steps 2 --stages 2 --checkpoint d "
                               "--checkpoint-every 2147483647"
                                 + tiny_model)
          .exit_code
        == 0);
  CHECK(fs::exists(folder.path() / "d/batch-2"));
}

TEST_CASE("a disk that is full costs the checkpoint alone", "[programs]") {
  temporary_folder folder;
  const auto ran = run_program_in(
    folder, "train --steps 4 --stages 2" + tiny_model + saving, "ulimit -f 4");
  CHECK(ran.exit_code == 1);
  CHECK_THAT(ran.err, ContainsSubstring("no checkpoint: cannot write c/batch-2"));
  CHECK(fs::is_empty(folder.path() / "c"));
}

TEST_CASE("a training that is killed leaves whole checkpoints", "[programs]") {
  temporary_folder folder;
  // Only the last two checkpoints stay. The thirtieth may be gone before the loop
  // looks.
  const std::string late = "ls c 2>&1 | grep -qE '^batch-([3-9][0-9]|[0-9]{3,})$'";
  const auto ran = run_shell_in(
    folder, "train --steps 100000 --stages 2 --checkpoint c --checkpoint-every 1"
              + tiny_model + "& until " + late
              + "; do :; done; kill -9 $!; wait; checkpoint c");
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("whole"));
}

TEST_CASE("who cannot go on is told what can", "[programs]") {
  temporary_folder folder;
  REQUIRE(
    run_program_in(folder, "train --steps 4 --stages 2" + tiny_model + saving).exit_code
    == 0);
  const auto refused = [&](const std::string& typed, const std::string& why) {
    const auto ran = run_program_in(folder, "train " + typed);
    INFO(typed);
    CHECK(ran.exit_code == 2);
    CHECK_THAT(ran.err, ContainsSubstring(why));
  };
  refused("--steps 4 --stages 2 --resume c" + tiny_model, "say --steps 5 or more");
  refused("--steps 9 --stages 2 --optimizer sgd --resume c" + tiny_model,
          "the checkpoint's optimizer has the state mean, square, and the run's "
          "optimizer has no state");
  refused("--steps 9 --stages 2 --optimizer nadam --resume c" + tiny_model,
          "--optimizer");
  refused("--steps 9 --stages 2 --resume none" + tiny_model,
          "there is no checkpoint in none");
  refused("--steps 9 --stages 2 --resume c/batch-4/manifest.json" + tiny_model,
          "manifest.json is a file, and a checkpoint is a folder; --init reads files "
          "of weights");
  refused("--steps 9 --stages 2 --resume c/batch-3" + tiny_model,
          "there is no checkpoint in c/batch-3");
  refused("--steps 9 --stages 2 --checkpoint c/batch-4 --checkpoint-every 1"
            + tiny_model,
          "c/batch-4 is a checkpoint: name the folder that contains the checkpoint");
  refused("--steps 9 --stages 2 --resume auto" + tiny_model,
          "--resume auto continues from the checkpoints of --checkpoint");
  refused("--steps 9 --stages 2 --resume auto --verify 1" + tiny_model + saving,
          "leave --verify or --resume out");
  refused("--steps 9 --stages 2 --resume c --init w" + tiny_model,
          "leave --resume or --init out");
  refused("--steps 9 --stages 2 --checkpoint c" + tiny_model,
          "say --checkpoint-every 100");
  refused("--steps 9 --mesh data=2,pipe=2 --exchange hogwild --checkpoint c "
          "--checkpoint-every 2"
            + tiny_model,
          "hogwild updates data replicas one by one");
  auto other = tiny_model;
  other.replace(other.find("--batch 9"), 9, "--batch 8");
  refused("--steps 9 --stages 2 --resume c" + other, "say --batch 9");
}

TEST_CASE("any whole checkpoint of a folder can be named", "[programs]") {
  temporary_folder folder;
  const auto c = folder.path() / "c";
  const auto steps = [](int count) {
    return "train --stages 2 --steps " + std::to_string(count) + tiny_model;
  };
  REQUIRE(run_program_in(folder, steps(6) + saving).exit_code == 0);
  REQUIRE(run_program_in(folder, steps(2) + "--save two.safetensors").exit_code == 0);
  REQUIRE(run_program_in(folder, steps(3) + "--save three.safetensors").exit_code == 0);
  const auto listed = run_program_in(folder, "checkpoint c").out;
  for (const auto* const name : {"c/batch-2: ", "c/batch-4: ", "c/batch-6: "})
    CHECK_THAT(listed, ContainsSubstring(name));
  CHECK_THAT(run_program_in(folder, "checkpoint c/batch-2/").out,
             ContainsSubstring("c/batch-2: 2 steps") && !ContainsSubstring("batch-4"));

  const auto rest =
    run_program_in(folder, steps(3) + "--resume c/batch-2/ --save rest.safetensors");
  INFO(rest.err);
  CHECK(rest.exit_code == 0);
  CHECK((content_of(folder.path() / "rest.safetensors")
         == content_of(folder.path() / "three.safetensors")));
  const auto results = nlohmann::json::parse(content_of(folder.path() / "r.json"));
  CHECK(results["resumed_from"] == "c/batch-2");
  CHECK(results["runs"][0]["steps_before"] == 2);
  const auto loss_of = [&](const std::string& weights) {
    return nlohmann::json::parse(
      run_program_in(folder, "evaluate --quiet --json - --weights " + weights)
        .out)["loss"];
  };
  CHECK(loss_of("c/batch-2") == loss_of("two.safetensors"));
  CHECK(loss_of("c/batch-2") != loss_of("c"));

  // Checkpoints that are newer than the named one are not overwritten.
  const auto replaces =
    run_program_in(folder, steps(3) + "--resume c/batch-2" + saving);
  CHECK(replaces.exit_code == 2);
  CHECK_THAT(replaces.err, ContainsSubstring("would replace c/batch-6"));
  CHECK(run_program_in(folder, steps(7) + "--resume c/batch-6" + saving).exit_code
        == 0);
  CHECK(fs::exists(c / "batch-7"));
  fs::rename(c / "batch-4", folder.path() / "best");
  CHECK(run_program_in(folder, steps(5) + "--resume best").exit_code == 0);
  flip(folder.path() / "best/stage-0.safetensors", 300);
  const auto broken = run_program_in(folder, steps(5) + "--resume best");
  CHECK(broken.exit_code == 2); // no other checkpoint is read
  CHECK_THAT(broken.err, ContainsSubstring("best/stage-0.safetensors has changed"));
}

TEST_CASE("one command starts a training, resumes it, and finds it complete",
          "[programs]") {
  temporary_folder folder;
  auto loud = tiny_model;
  loud.erase(loud.find("--quiet "), 8);
  const auto command =
    "train --steps 6 --stages 2 --save w.safetensors --init i.safetensors "
    "--resume auto --change lr"
    + loud + saving;
  const auto resumed_from = [&] {
    return nlohmann::json::parse(content_of(folder.path() / "r.json"))["resumed_from"];
  };
  REQUIRE(
    run_program_in(folder, "train --steps 1 --seed 5 --save i.safetensors" + tiny_model)
      .exit_code
    == 0);
  const auto first = run_program_in(folder, command);
  INFO(first.err);
  REQUIRE(first.exit_code == 0);
  const std::string anew =
    "starts at the first step: there is no checkpoint in c yet\n";
  CHECK_THAT(first.out, ContainsSubstring(anew));
  // The sentence comes before the run, and before the table.
  CHECK(first.out.find(anew) != first.out.rfind(anew));
  CHECK(resumed_from().is_null());
  const auto whole = content_of(folder.path() / "w.safetensors");

  fs::remove_all(folder.path() / "c/batch-6");
  fs::create_directories(folder.path() / "c/batch-5.unfinished");
  fs::remove(folder.path() / "w.safetensors");
  const auto next = run_program_in(folder, command);
  INFO(next.err);
  CHECK(next.exit_code == 0);
  CHECK_THAT(next.out, ContainsSubstring("continues from c/batch-4, after 4 steps\n"));
  CHECK(resumed_from() == "c/batch-4");
  CHECK((content_of(folder.path() / "w.safetensors") == whole));

  const auto last = run_program_in(folder, command);
  CHECK(last.exit_code == 0);
  CHECK_THAT(last.err, ContainsSubstring("c/batch-6 has finished 6 steps")
                         && ContainsSubstring("the training is complete"));
  auto printing = command;
  const std::string file = "--json r.json";
  printing.replace(printing.find(file), file.size(), "--json -");
  const auto unprinted = run_program_in(folder, printing);
  CHECK(unprinted.exit_code == 1);
  CHECK_THAT(unprinted.err, ContainsSubstring("--json - is missing"));
  fs::remove(folder.path() / "w.safetensors");
  const auto unsaved = run_program_in(folder, command);
  CHECK(unsaved.exit_code == 1);
  CHECK_THAT(unsaved.err, ContainsSubstring("--save w.safetensors is missing"));

  // A folder without a whole checkpoint is an error, and not a new start.
  for (const auto* const name : {"batch-2", "batch-4", "batch-6"})
    flip(folder.path() / "c" / name / "stage-0.safetensors", 300);
  const auto broken = run_program_in(folder, command);
  CHECK(broken.exit_code == 2);
  CHECK_THAT(broken.err, ContainsSubstring("has changed since it was written"));
}

} // namespace troupe::checkpoints_test
