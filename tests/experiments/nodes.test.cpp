// SPDX-License-Identifier: BSD-3-Clause
// Runs on several processes, from a user's side. Files must equal those of one process;
// nodes are killed or stopped, and strangers connect.

#include "tests/dice.hpp"
#include "tests/experiments/started.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::nodes_test {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

const std::string tiny =
  "--model gpt --d-model 16 --heads 2 --seq 8 --vocab 11 --layers 4 --batch 12 "
  "--microbatches 4 --evaluate-samples 0 --quiet ";

constexpr auto patience = 30s;

#ifndef TROUPE_SANITIZED

int faults() {
  const auto* const said = std::getenv("TROUPE_FAULTS");
  return said != nullptr ? std::atoi(said) : 10;
}

/// The output of a run that has lost a node.
struct run_with_a_loss {
  std::string said;
  std::string victim; // the node's address
};

/// Trains on nodes, and sends one node a signal when the first checkpoint exists.
/// Checks that the run ends with the bits of an undisturbed run.
run_with_a_loss lose_a_node(const std::string& ranks, const std::string& restart,
                            int count, std::size_t victim, int signal) {
  temporary_folder folder;
  const auto common = tiny + ranks + " --steps 400 --optimizer adamw ";
  REQUIRE(
    run_program_in(folder, "train " + common + "--save whole.safetensors --json r.json")
      .exit_code
    == 0);
  const auto whole = nlohmann::json::parse(content_of(folder.path() / "r.json"));
  started_nodes nodes{folder, count};
  started train{folder, "train",
                words_of("train " + common
                         + "--save w.safetensors --json r.json --checkpoint c "
                           "--checkpoint-every 25 "
                           "--failure-timeout 0.5 "
                         + restart + " --nodes " + nodes.addresses())};
  for (int looks = 0; looks < 20'000 && !fs::exists(folder.path() / "c/batch-25");
       ++looks)
    std::this_thread::sleep_for(1ms);
  nodes.all[victim].send(signal);
  CHECK(train.wait(patience) == 0);
  INFO(train.said());
  CHECK(content_of(folder.path() / "w.safetensors")
        == content_of(folder.path() / "whole.safetensors"));
  const auto results = nlohmann::json::parse(content_of(folder.path() / "r.json"));
  const auto& lost = results["runs"][0];
  for (const auto* const key : {"loss", "loss_samples", "loss_every", "steps",
                                "steps_before", "samples", "updates"}) {
    INFO(key);
    CHECK((lost[key] == whole["runs"][0][key]));
  }
  const auto steps =
    lost["steps"].get<double>() - lost["steps_before_last_start"].get<double>();
  CHECK(steps < 400);
  CHECK(
    std::abs(lost["samples_per_second"].get<double>() * lost["seconds"].get<double>()
             - steps * results["data"]["batch"].get<double>())
    < 1e-6);
  return {train.said(), nodes.list[victim]};
}

#endif

} // namespace

TEST_CASE("several processes save the file that one does", "[nodes]") {
  const auto [nodes, how] = GENERATE(
    std::pair{"2", "--stages 4"}, std::pair{"3", "--stages 3 --tied"},
    std::pair{"4", "--mesh data=2,tensor=2 --exchange zero1 --stages 1 --clip 1"},
    std::pair{"2", "--mesh data=2,pipe=2 --compress bf16"},
    std::pair{"2", "--stages 4 --schedule chimera"});
  temporary_folder folder;
  const auto common = tiny + how + " --steps 3 --save ";
  REQUIRE(run_program_in(folder, "train " + common + "one.safetensors").exit_code == 0);
  const auto there = run_program_in(folder, std::string{"local "} + nodes + " train "
                                              + common + "all.safetensors");
  INFO(there.err);
  REQUIRE(there.exit_code == 0);
  CHECK(content_of(folder.path() / "all.safetensors")
        == content_of(folder.path() / "one.safetensors"));
}

TEST_CASE("a full disk costs checkpoints alone, also where nodes train", "[nodes]") {
  temporary_folder folder;
  const auto ran = run_program_in(folder,
                                  "local 2 train " + tiny
                                    + "--stages 4 --steps 4 --checkpoint c "
                                      "--checkpoint-every 2 --json r.json",
                                  "ulimit -f 16");
  CHECK(ran.exit_code == 1);
  CHECK_THAT(ran.err, ContainsSubstring("no checkpoint: cannot write c/batch-2"));
  CHECK(fs::is_empty(folder.path() / "c"));
  CHECK_THAT(content_of(folder.path() / "r.json"),
             ContainsSubstring(R"("ending": "finished")"));
}

TEST_CASE("who ends local ends the run that it leads", "[nodes]") {
  temporary_folder folder;
  started local{folder, "local",
                words_of("local 2 train " + tiny
                         + "--stages 2 --steps 1000000 --checkpoint c "
                           "--checkpoint-every 1")};
  for (int looks = 0; looks < 5000 && !fs::exists(folder.path() / "c/batch-3"); ++looks)
    std::this_thread::sleep_for(2ms);
  local.send(GENERATE(SIGTERM, SIGUSR1));
  CHECK(local.wait(60s) == 130); // the leader's exit code
}

// A batch system signals all processes of a job.
TEST_CASE("nodes that hear with their leader that the job ends let it save",
          "[nodes]") {
  temporary_folder folder;
  started_nodes nodes{folder, 2};
  started train{
    folder, "train",
    words_of("train " + tiny
             + "--stages 2 --steps 1000000 --save w.safetensors --json "
               "r.json --checkpoint c --checkpoint-every 5 --keep 1000000 --nodes "
             + nodes.addresses())};
  for (int looks = 0; looks < 15'000 && !fs::exists(folder.path() / "c/batch-5");
       ++looks)
    std::this_thread::sleep_for(2ms);
  for (const auto& node : nodes.all) // before the leader: a run under way continues
    node.send(SIGUSR1);
  train.send(SIGUSR1);
  CHECK(train.wait(patience) == 130);
  INFO(train.said());
  for (auto& node : nodes.all)
    CHECK(node.wait(patience) == 0);
  const auto run =
    nlohmann::json::parse(content_of(folder.path() / "r.json"))["runs"][0];
  CHECK(run["ending"] == "interrupted");
  const auto updates = run["updates"][0].get<int>();
  const auto last = "c/batch-" + std::to_string(updates);
  CHECK(fs::exists(folder.path() / last));
  const auto exact =
    run_program_in(folder, "train " + tiny + "--stages 2 --save v.safetensors --steps "
                             + std::to_string(updates));
  CHECK(exact.exit_code == 0);
  CHECK(content_of(folder.path() / "w.safetensors")
        == content_of(folder.path() / "v.safetensors"));
}

#ifndef TROUPE_SANITIZED // programs take minutes there; tests of actors run nodes too

TEST_CASE("hosts of their own train the same bits, and one that is cut off is named",
          "[nodes]") {
  temporary_folder folder;
  const auto result = run_shell_in(folder, "bash " TROUPE_NAMESPACES " " + tiny
                                             + "--stages 4 2>&1 >/dev/null");
  if (result.exit_code == 77)
    SKIP("the system allows no network namespaces");
  INFO(result.out);
  CHECK(result.exit_code == 0);
}

#endif

TEST_CASE("verify proves what nodes have played", "[nodes]") {
  temporary_folder folder;
  const auto proved = run_program_in(
    folder,
    "local 2 verify --model mlp --stages 4 --schedules pipedream,ampnet --steps 3");
  INFO(proved.err);
  CHECK(proved.exit_code == 0);
  CHECK_THAT(proved.out, ContainsSubstring("2 runs, 0 that fail"));
}

TEST_CASE("a node says what it does, and outlives a run", "[nodes]") {
  temporary_folder folder;
  started_nodes nodes{folder, 1};
  const auto ask = "node --status " + nodes.addresses();
  std::string said;
  for (int looks = 0; looks < 5 && said.empty(); ++looks) // a busy machine is slow
    said = run_program_in(folder, ask).out;
  CHECK_THAT(said, ContainsSubstring("is idle; 0 runs wait"));
  started train{folder, "train",
                words_of("train " + tiny + "--stages 2 --steps 1000000 --nodes "
                         + nodes.addresses())};
  for (int looks = 0; looks < 500 && said.find("executes ranks") == std::string::npos;
       ++looks)
    said = run_program_in(folder, ask).out;
  CHECK_THAT(said, ContainsSubstring("executes ranks of a run as node 1 of 1"));
  train.send(SIGKILL);
  for (int looks = 0; looks < 500 && said.find("is idle") == std::string::npos; ++looks)
    said = run_program_in(folder, ask).out;
  CHECK_THAT(said, ContainsSubstring("is idle"));
}

#ifndef TROUPE_SANITIZED

// Whichever process is killed or stopped, at any time: the run ends with a sentence or
// starts again, in time. All checkpoints are complete. A run that succeeds ends with
// the bits of an undisturbed run.
TEST_CASE("a node that is killed or stopped is noticed, and a run can begin again",
          "[nodes][faults]") {
  temporary_folder folder;
  const auto common = tiny + "--stages 3 --steps 300 ";
  REQUIRE(
    run_program_in(folder, "train " + common + "--save whole.safetensors").exit_code
    == 0);
  const auto whole = content_of(folder.path() / "whole.safetensors");
  for (int seed = 1; seed <= faults(); ++seed) {
    dice roll{static_cast<unsigned>(seed)};
    const bool restarts = roll.number(0, 2) > 0, stops = roll.coin();
    const auto victim = static_cast<std::size_t>(roll.number(0, 2));
    const auto second = static_cast<std::size_t>(roll.number(0, 2));
    const bool two = roll.number(0, 3) == 0 && second != victim;
    const std::chrono::milliseconds when{roll.number(0, 700)};
    INFO("seed " << seed << (stops ? " stops " : " kills ") << victim << " after "
                 << when.count() << " ms" << (two ? ", and another" : "")
                 << (restarts ? ", restarts" : ""));
    fs::remove_all(folder.path() / "c");
    fs::remove(folder.path() / "w.safetensors");
    started_nodes nodes{folder, 3};
    started train{folder, "train",
                  words_of("train " + common
                           + "--save w.safetensors --checkpoint c "
                             "--checkpoint-every 25 --failure-timeout 0.5 --nodes "
                           + nodes.addresses() + (restarts ? " --restart" : ""))};
    std::this_thread::sleep_for(when);
    nodes.all[victim].send(stops ? SIGSTOP : SIGKILL);
    if (two)
      nodes.all[second].send(SIGKILL);
    const int code = train.wait(patience);
    INFO(train.said());
    REQUIRE((code == 0 || code == 1));
    if (code == 0)
      CHECK(content_of(folder.path() / "w.safetensors") == whole);
    else
      CHECK_THAT(train.said(), ContainsSubstring("127.0.0.1:"));
    if (restarts && train.said().find("; restarts ") != std::string::npos)
      CHECK(code == 0); // otherwise the node was lost before the run began
    if (fs::exists(folder.path() / "c") && !fs::is_empty(folder.path() / "c"))
      CHECK_THAT(run_program_in(folder, "checkpoint c").out,
                 ContainsSubstring("whole"));
  }
}

TEST_CASE("a run that loses a node goes on behind its checkpoint, to the same bits",
          "[nodes]") {
  const auto run =
    lose_a_node("--stages 3", "--restart", 3, 1, GENERATE(SIGKILL, SIGSTOP, SIGTERM));
  CHECK_THAT(run.said, ContainsSubstring("; restarts after c/batch-"));
  CHECK_THAT(run.said, ContainsSubstring(run.victim + " (rank 1) is lost"));
}

TEST_CASE("where a data replica is lost the others go on at the step that was lost",
          "[nodes][faults]") {
  const auto run =
    lose_a_node("--stages 2 --mesh data=2", "--restart --keep-steps", 2,
                GENERATE(std::size_t{0}, std::size_t{1}), GENERATE(SIGKILL, SIGSTOP));
  CHECK_THAT(run.said, ContainsSubstring("kept by other data replicas, on 1 node"));
}

TEST_CASE("a lead that was stopped for longer than a failure takes loses nobody",
          "[nodes][faults]") {
  temporary_folder folder;
  started_nodes nodes{folder, 2};
  started train{folder, "train",
                words_of("train " + tiny
                         + "--stages 2 --steps 1000000 --checkpoint c "
                           "--checkpoint-every 25 --keep 1 --failure-timeout 0.5 "
                           "--nodes "
                         + nodes.addresses())};
  const auto newest = [&] {
    int result = 0;
    std::error_code failed; // checkpoints appear and disappear
    for (fs::directory_iterator all{folder.path() / "c", failed}, end;
         !failed && all != end; all.increment(failed))
      if (const auto name = all->path().filename().string(); name.starts_with("batch-"))
        result = std::max(result, std::atoi(name.c_str() + 6));
    return result;
  };
  const auto reaches = [&](int batches) {
    for (int looks = 0; looks < 15'000 && newest() < batches; ++looks)
      std::this_thread::sleep_for(2ms);
    return newest() >= batches;
  };
  REQUIRE(reaches(25));
  train.send(SIGSTOP);
  std::this_thread::sleep_for(1200ms); // the fault: nodes wait for three seconds
  train.send(SIGCONT);
  CHECK(reaches(newest() + 100));
  train.send(SIGINT);
  CHECK(train.wait(patience) == 130);
  CHECK(train.said().find("lost") == std::string::npos);
}

TEST_CASE("runs behind one that lost a node are played by the others", "[nodes]") {
  temporary_folder folder;
  started_nodes nodes{folder, 2};
  started compare{
    folder, "compare",
    words_of("compare " + tiny
             + "--schedules 1f1b,gpipe --stages 1 --mesh data=2 --steps 1000 "
               "--json r.json --failure-timeout 0.5 --restart --keep-steps --nodes "
             + nodes.addresses())};
  std::this_thread::sleep_for(500ms); // at any time
  nodes.all[1].send(SIGKILL);
  CHECK(compare.wait(patience) == 0);
  INFO(compare.said());
  CHECK_THAT(content_of(folder.path() / "r.json"), !ContainsSubstring("failed"));
}

TEST_CASE("a run that nodes refuse again waits for others, until the user ends it",
          "[nodes]") {
  temporary_folder folder;
  started_nodes nodes{folder, 2, "--max-ranks 1"};
  started train{folder, "train",
                words_of("train " + tiny
                         + "--stages 2 --steps 1000000 --checkpoint c "
                           "--checkpoint-every 25 --restart --failure-timeout 20 "
                           "--nodes "
                         + nodes.addresses())};
  const auto sees = [&](const auto& what) {
    for (int looks = 0; looks < 15'000 && !what(); ++looks)
      std::this_thread::sleep_for(2ms);
    return what();
  };
  const auto beginnings = [&] {
    const auto said = train.said();
    const std::string again = "; restarts ";
    int count = 0;
    for (auto at = said.find(again); at != std::string::npos;
         at = said.find(again, at + 1))
      ++count;
    return count;
  };
  REQUIRE(sees([&] { return fs::exists(folder.path() / "c/batch-25"); }));
  nodes.all[1].send(SIGKILL);
  REQUIRE(sees([&] { return beginnings() >= 2; })); // after the loss, and an error
  std::this_thread::sleep_for(300ms);
  INFO(train.said());
  CHECK(beginnings() == 2);
  train.send(SIGINT);
  CHECK(train.wait(patience) == 130);
  CHECK_THAT(train.said(), ContainsSubstring("the node's --max-ranks is 1"));
}

TEST_CASE("a run by TLS trains the same bits, and strangers play no part", "[nodes]") {
  temporary_folder folder;
  REQUIRE(run_program_in(folder, "certificates ours 127.0.0.1").exit_code == 0);
  REQUIRE(run_program_in(folder, "certificates theirs 127.0.0.1").exit_code == 0);
  const auto files = [](const std::string& of) {
    return " --tls " + of + "/127.0.0.1.crt," + of + "/127.0.0.1.key," + of
           + "/authority.crt ";
  };
  started_nodes nodes{folder, 2, files("ours")};
  const auto common = tiny + "--stages 2 --steps 3 --save ";
  REQUIRE(run_program_in(folder, "train " + common + "one.safetensors").exit_code == 0);
  const auto there = "train " + common + "w.safetensors --nodes " + nodes.addresses();
  CHECK(run_program_in(folder, there).exit_code == 1);
  CHECK_THAT(run_program_in(folder, there + files("theirs")).err,
             ContainsSubstring("authority"));
  CHECK_FALSE(fs::exists(folder.path() / "w.safetensors"));
  const auto asked = run_program_in(folder, "node --status " + nodes.list.front());
  CHECK(asked.exit_code == 1);
  CHECK(asked.err
        == "node: node " + nodes.list.front()
             + ": it expects TLS; say --tls CERTIFICATE,KEY,AUTHORITY\n");
  // Both nodes refuse at once; the program reports the refusal that arrives first.
  const auto refusal_of = [&](std::size_t rank) {
    return "train: 1f1b: node " + nodes.list[rank] + " (rank " + std::to_string(rank)
           + "): it expects TLS; say --tls CERTIFICATE,KEY,AUTHORITY\n";
  };
  const auto refused = run_program_in(folder, there).err;
  INFO(refused);
  CHECK((refused == refusal_of(0) || refused == refusal_of(1)));
  const auto result = run_program_in(folder, there + files("ours"));
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK(content_of(folder.path() / "w.safetensors")
        == content_of(folder.path() / "one.safetensors"));
  CHECK_THAT(nodes.all[1].said(),
             ContainsSubstring("executes ranks of a run as node 2"));
}

#endif

TEST_CASE("a node refuses what its owner has not allowed", "[nodes]") {
  temporary_folder folder;
  const auto ends_with = [&](const std::string& limits, const std::string& asked,
                             const std::string& from = ".") {
    fs::create_directories(folder.path() / from);
    started node{folder, "node",
                 words_of("node --listen 127.0.0.1:0 --threads 1 " + limits)};
    std::string said;
    for (int looks = 0; looks < 4000 && said.find(" with ") == std::string::npos;
         ++looks) {
      std::this_thread::sleep_for(2ms);
      said = node.said();
    }
    const auto begin = said.find("127.0.0.1:");
    const auto result = run_shell_in(
      folder, "cd " + from
                + " && train --steps 1 --stages 2 --evaluate-samples 0 --nodes "
                + said.substr(begin, said.find(' ', begin) - begin) + " " + asked);
    INFO(node.said() << result.err);
    CHECK(result.exit_code == 1);
    return result.err + node.said();
  };
  CHECK_THAT(ends_with("--max-ranks 1", "--model mlp"),
             ContainsSubstring("the node's --max-ranks is 1"));
  CHECK_THAT(ends_with("--max-memory 1", "--model mlp --d-model 512"),
             ContainsSubstring("the node's --max-memory is 1"));
  std::ofstream{folder.path() / "text.txt"} << std::string(5000, 'a') << "bcdefghijk";
  CHECK_THAT(ends_with("--folder own", "--seq 8 --data text:../text.txt", "own"),
             ContainsSubstring("reads only files of its --folder"));
}

TEST_CASE("a run that nodes do not begin leaves what an earlier one wrote", "[nodes]") {
  const temporary_folder folder;
  const auto run = "train " + tiny + "--stages 2 --steps 2 --json w.json --report r ";
  REQUIRE(run_program_in(folder, run + "--save w.safetensors").exit_code == 0);
  const auto results = content_of(folder.path() / "w.json"),
             page = content_of(folder.path() / "r/report.html");
  const auto refused = run_program_in(folder, run + "--nodes 127.0.0.1:1");
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.err, ContainsSubstring("127.0.0.1:1"));
  CHECK(refused.out.empty());
  CHECK((content_of(folder.path() / "w.json") == results));
  CHECK((content_of(folder.path() / "r/report.html") == page));
}

TEST_CASE("options of nodes that make no sense are refused", "[nodes]") {
  temporary_folder folder;
  const auto refused = [&](const std::string& options) {
    const auto result =
      run_program_in(folder, "train " + tiny + "--steps 1 " + options);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK_THAT(refused("--nodes x"), ContainsSubstring("HOST:PORT"));
  CHECK_THAT(refused("--nodes 127.0.0.1:1,127.0.0.1:1"), ContainsSubstring("twice"));
  CHECK_THAT(refused("--place 1"), ContainsSubstring("say --nodes too"));
  CHECK_THAT(refused("--nodes 127.0.0.1:1 --restart"),
             ContainsSubstring("--checkpoint"));
  CHECK_THAT(refused("--nodes 127.0.0.1:1 --keep-steps"),
             ContainsSubstring("say --restart too"));
  CHECK_THAT(refused("--nodes 127.0.0.1:1 --restart --keep-steps"),
             ContainsSubstring("data=2"));
  CHECK_THAT(refused("--mesh data=2 --nodes 127.0.0.1:1 --restart --keep-steps"),
             ContainsSubstring("name more --nodes"));
  CHECK_THAT(refused("--nodes 10.1.2.3:1"), ContainsSubstring("--tls"));
  CHECK_THAT(refused("--nodes 127.0.0.1:1 --tls a,b"), ContainsSubstring("three PEM"));
  CHECK_THAT(refused("--nodes 127.0.0.1:1 --tls a,b,c"), ContainsSubstring("a"));
  CHECK(run_program_in(folder, "node --listen 0.0.0.0:0").exit_code == 2);
  for (const std::string option :
       {"--listen 127.0.0.1:0", "--threads 1", "--queue 0"}) {
    const auto both = run_program_in(folder, "node --status 127.0.0.1:1 " + option);
    CHECK(both.exit_code == 2);
    CHECK_THAT(both.err, ContainsSubstring(option.substr(0, option.find(' '))
                                           + " has no effect with --status"));
  }
  CHECK(run_program_in(folder, "local 0 train").exit_code == 2);
  CHECK(run_program_in(folder, "local 2 bench").exit_code == 2);
}

} // namespace troupe::nodes_test
