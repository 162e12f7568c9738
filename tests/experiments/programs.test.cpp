// The programs as a user meets them: what they print, leave behind and return.

#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using nlohmann::json;

std::string program_path(const std::string& name) {
  return TROUPE_PROGRAMS "/" + name;
}

namespace {

const std::string tiny = " --d-model 8 --heads 2 --seq 4 --vocab 7 ";

bool one_line(const std::string& text) {
  return std::ranges::count(text, '\n') == 1 && text.ends_with('\n');
}

/// A weight file without what it says of its run.
std::string tensors_of(const std::filesystem::path& file) {
  const auto content = content_of(file);
  std::uint64_t length = 0;
  std::memcpy(&length, content.data(), sizeof length);
  auto header = json::parse(content.substr(sizeof length, length));
  header.erase("__metadata__");
  return header.dump() + content.substr(sizeof length + length);
}

} // namespace

TEST_CASE("every program helps and knows its version", "[programs]") {
  temporary_folder folder;
  const std::string name = GENERATE("bench", "compare", "simulate", "train", "verify");
  const auto help = run_program_in(folder, name + " --help");
  CHECK(help.exit_code == 0);
  CHECK_THAT(help.out, ContainsSubstring("--microbatches"));
  CHECK(help.err.empty());
  const auto version = run_program_in(folder, name + " --version");
  CHECK(version.exit_code == 0);
  CHECK_THAT(version.out, StartsWith("troupe "));
}

TEST_CASE("a mistake gets one sentence, exit code 2, and no file", "[programs]") {
  temporary_folder folder;
  folder.write("broken.toml", "steps = [3\n");
  folder.write("unknown.toml", "stepz = 3\n");
  folder.write("broken.safetensors", "not a header");
  folder.write("options.toml", "steps = 3\n");
  REQUIRE(mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  const std::string typed = GENERATE(
    "train --schedule zigzag", "train --stages 99", "train --steps 1.5",
    "train --steps three", "train --nonsense", "train nonsense",
    "train --config missing.toml", "train --config broken.toml",
    "train --config unknown.toml", "train --init broken.safetensors",
    "train --save /nowhere/w.safetensors", "train --json /nowhere/r.json",
    "train --report /proc/nowhere", "compare --schedules gpipe,zigzag",
    "compare --schedules chimera --stages 3", "simulate --cost F=fast",
    "simulate --microbatches 99999999999",
    "simulate --stages 1000000000 --microbatches 1", "simulate --schedule 1f1b:lr=1",
    "collectives --ranks 4096", "collectives --ranks 2,x", "collectives --bytes 5",
    "collectives --operation allreduce", "collectives --algorithm zigzag",
    "collectives --operation send --algorithm ring", "collectives --bandwidth -1",
    "collectives --json /nowhere/r.json", "memory --schedules gpipe,1f1b",
    "memory --mesh tensor=3", "simulate --sequence-parallel",
    "memory --json /nowhere/r.json", "compare --mesh data=2 --exchange zero4",
    "verify --mesh data=2 --schedule 1f1b --exchange hogwild",
    "compare --mesh data=2 --exchange server:staleness=x",
    "verify --schedule 2bw --microbatches 2", "verify --all --schedule foo",
    "verify --all --model lenet", "verify --all --steps 3", "train --save x --json ./x",
    "train --report r --save r/results.json",
    "simulate --report r --json r/results.json",
    "train --save model.safetensors --json config.json",
    "simulate --machines ranks=2,links=options.toml --json options.toml",
    "simulate --stages 4 --machines ranks=4,latency=50",
    "compare --report r --save r/trace.json",
    "train --save x --config options.toml --json options.toml",
    "train --data text:options.toml --vocab 256 --save options.toml",
    "train --json /dev/null", "train --save /dev/null", "train --report /dev/null",
    "train --save .", "simulate --report options.toml", "train --config pipe",
    "simulate --quiet --print", "train --steps 010",
    "train --model mlp --layers 1000000");
  const auto wrong = run_program_in(folder, typed);
  INFO(typed << "\n" << wrong.err);
  CHECK(wrong.exit_code == 2);
  CHECK(one_line(wrong.err));
  CHECK_THAT(wrong.err, StartsWith(typed.substr(0, typed.find(' ')) + ": "));
  CHECK(wrong.out.empty());
  CHECK_FALSE(std::filesystem::exists(folder.path() / "runs"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "r"));
  CHECK(content_of(folder.path() / "options.toml") == "steps = 3\n");
}

TEST_CASE("compare reports every schedule", "[programs]") {
  temporary_folder folder;
  const auto ran =
    run_program_in(folder, "compare --steps 3 --report r --batch 8" + tiny);
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  const auto results = json::parse(content_of(folder.path() / "r/results.json"));
  std::vector<std::string> names;
  for (const auto& run : results["runs"]) {
    names.push_back(run["schedule"]);
    CHECK_THAT(ran.out, ContainsSubstring("\n" + names.back()));
    const auto trace = "r/trace-" + names.back() + ".json";
    CHECK_FALSE(json::parse(content_of(folder.path() / trace))["traceEvents"].empty());
    CHECK(run["evaluation"]["loss"] > 0);
  }
  CHECK(names
        == std::vector<std::string>{"naive", "gpipe", "1f1b", "chimera", "pipedream",
                                    "2bw", "ampnet"});
  // The flush schedules train the same network.
  for (const int other : {1, 2})
    CHECK(results["runs"][0]["loss"] == results["runs"][other]["loss"]);
}

TEST_CASE("compare without a report folder makes one of its own", "[programs]") {
  temporary_folder folder;
  const auto ran = run_program_in(folder, "compare --schedules gpipe --steps 1" + tiny);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("results.json"));
  CHECK(std::filesystem::exists(folder.path() / "runs"));
}

TEST_CASE("the same command twice gives the same bytes in virtual time", "[programs]") {
  temporary_folder folder;
  const std::string typed =
    GENERATE("simulate --stages 8 --microbatches 16 --report r",
             "train --clock virtual --schedule ampnet:min_update_frequency=2 --steps 4 "
             "--evaluate-every 2 --save r/w.safetensors --report r");
  std::filesystem::create_directory(folder.path() / "r");
  std::vector<std::string> all;
  for (int i = 0; i < 2; ++i) {
    const auto ran =
      run_program_in(folder, typed + (typed.starts_with("train") ? tiny : ""));
    INFO(ran.err);
    CHECK(ran.exit_code == 0);
    all.push_back(ran.out);
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator{folder.path() / "r"})
      files.push_back(file);
    std::ranges::sort(files);
    CHECK(files.size() > 1);
    for (const auto& file : files)
      all.back() += content_of(file);
  }
  CHECK((all[0] == all[1]));
}

TEST_CASE("standard output is for the results alone under --json -", "[programs]") {
  temporary_folder folder;
  const auto ran = run_program_in(folder, "simulate --schedule gpipe --print --json -");
  CHECK(ran.exit_code == 0);
  CHECK(json::parse(ran.out)["runs"].size() == 1);
  CHECK_THAT(ran.err, ContainsSubstring("rank 3"));
  const auto quiet = run_program_in(folder, "train --quiet --json - --steps 2" + tiny);
  CHECK(quiet.exit_code == 0);
  CHECK(json::parse(quiet.out)["runs"][0]["loss"].size() == 2);
  CHECK(quiet.err.empty());
}

TEST_CASE("a file gives any option, and the command line goes before it",
          "[programs]") {
  temporary_folder folder;
  folder.write("options.toml",
               "steps = 3\nschedule = \"gpipe\"\nd-model = 8\nheads = 2\n"
               "seq = 4\nvocab = 7\njson = \"r.json\"\n");
  const auto ran = run_program_in(folder, "train --config options.toml --steps 2");
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  const auto results = json::parse(content_of(folder.path() / "r.json"));
  CHECK(results["runs"][0]["schedule"] == "gpipe");
  CHECK(results["runs"][0]["steps"] == 2);
}

TEST_CASE("saved weights go on where they were, under any schedule and cut",
          "[programs]") {
  temporary_folder folder;
  const auto first = run_program_in(
    folder, "train --steps 4 --stages 2 --save w.safetensors --json a.json" + tiny);
  CHECK(first.exit_code == 0);
  const auto next = run_program_in(
    folder, "train --steps 1 --stages 4 --schedule gpipe --lr 0 --init w.safetensors "
            "--json b.json"
              + tiny);
  CHECK(next.exit_code == 0);
  const auto a = json::parse(content_of(folder.path() / "a.json"))["runs"][0];
  const auto b = json::parse(content_of(folder.path() / "b.json"))["runs"][0];
  CHECK(a["evaluation"] == b["evaluation"]);
}

TEST_CASE("verify's exit code is whether all proofs hold", "[programs]") {
  temporary_folder folder;
  const auto ran = run_program_in(folder, "verify --steps 2" + tiny);
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("plain loop: equal to the bit"));
  CHECK_THAT(ran.out, ContainsSubstring("replay: equal to the bit"));
  CHECK_THAT(ran.out, ContainsSubstring("7 runs, 0 that fail"));
}

TEST_CASE("a loss that is not finite ends the run and says where", "[programs]") {
  temporary_folder folder;
  const auto ran = run_program_in(
    folder, "train --steps 50 --optimizer sgd --lr 1e30 --json r.json" + tiny);
  CHECK(ran.exit_code == 1);
  CHECK_THAT(ran.err, ContainsSubstring("stage 3"));
  CHECK_THAT(ran.err, ContainsSubstring("microbatch"));
  CHECK_THAT(ran.err, ContainsSubstring("version"));
  const auto run = json::parse(content_of(folder.path() / "r.json"))["runs"][0];
  CHECK(run["ending"] == "failed");
}

TEST_CASE("a last update that diverges leaves the weights that were saved before",
          "[programs]") {
  temporary_folder folder;
  REQUIRE(run_program_in(folder, "train --steps 1 --save w" + tiny).exit_code == 0);
  const auto before = content_of(folder.path() / "w");
  const auto ran = run_program_in(folder, "train --steps 1 --lr 1e308 --save w" + tiny);
  CHECK(ran.exit_code == 1);
  CHECK_THAT(ran.err, ContainsSubstring("the weights are not finite: transformer."));
  CHECK((content_of(folder.path() / "w") == before));
}

TEST_CASE("a FIFO in a file's place is refused, and nothing waits for it",
          "[programs]") {
  temporary_folder folder;
  REQUIRE(mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  const std::string typed =
    GENERATE("train --init pipe", "train --data text:pipe", "train --data tokens:pipe",
             "train --save pipe", "train --json pipe");
  const auto wrong = run_program_in(folder, typed);
  CHECK(wrong.exit_code == 2);
  CHECK(one_line(wrong.err));
}

TEST_CASE("a local rule in virtual time is what its prediction says", "[programs]") {
  temporary_folder folder;
  const std::string cost = GENERATE("", " --cost F=1,B=2,latency=0.1,bandwidth=1e6");
  const auto ran = run_program_in(
    folder, "verify --schedule ampnet --clock virtual --steps 3" + cost + tiny);
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
}

TEST_CASE("collectives measures and checks every algorithm at every number of ranks",
          "[programs]") {
  temporary_folder folder;
  CHECK_THAT(run_program_in(folder, "collectives --help").out,
             ContainsSubstring("--ranks") && ContainsSubstring("all_reduce halving"));
  const auto ran = run_program_in(
    folder, "collectives --ranks 1,4,6 --bytes 48000 --latency 0.1 --bandwidth 1e8 "
            "--json r.json");
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("\n4 ranks") && ContainsSubstring("\n6 ranks")
                        && !ContainsSubstring("WRONG"));
  const auto results = json::parse(content_of(folder.path() / "r.json"));
  CHECK(results["runs"].size() % 3 == 0);
  for (const auto& run : results["runs"]) {
    CHECK(run["right"] == true);
    CHECK(run["messages"] == run["book"]["messages"]);
    if (run["algorithm"] == "ring" && run["operation"] == "all_reduce"
        && run["ranks"] == 4) {
      CHECK(run["rounds"] == 6);
      CHECK(run["bytes"] == 6 * 48000);
      CHECK(run["peak_bytes"] == 12000);
      CHECK(run["seconds"] == run["book"]["seconds"]);
    }
  }
  CHECK(results["ring_beats_tree"][0]["bytes"].is_null());
  CHECK(results["ring_beats_tree"][1]["bytes"] > 0);
}

TEST_CASE("a collective of one operation and algorithm runs alone", "[programs]") {
  temporary_folder folder;
  const auto ran = run_program_in(folder, "collectives --operation broadcast,reduce "
                                          "--algorithm tree --json -");
  CHECK(ran.exit_code == 0);
  CHECK(json::parse(ran.out)["runs"].size() == 2);
}

TEST_CASE("memory measures every level of ZeRO beside its formulas", "[programs]") {
  temporary_folder folder;
  const auto ran = run_program_in(
    folder, "memory --mesh data=2,pipe=2,tensor=2 --seq 8 --steps 1 --json r.json");
  INFO(ran.err);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("by the book") && ContainsSubstring("zero3"));
  const auto results = json::parse(content_of(folder.path() / "r.json"));
  REQUIRE(results["runs"].size() == 4);
  for (const auto& run : results["runs"]) {
    CHECK(run["ranks"].size() == 8);
    for (const auto& rank : run["ranks"])
      for (const char* use : {"parameters", "gradients", "optimizer"}) {
        const double measured = rank[use], book = rank["book"][use];
        CHECK(std::abs(measured / book - 1) < 0.02);
      }
  }
}

TEST_CASE("by sequence stages send a share each, and results say so", "[programs]") {
  temporary_folder folder;
  double sent[2];
  for (const bool by_sequence : {false, true}) {
    const auto ran = run_program_in(
      folder, "train --mesh pipe=2,tensor=2 --schedule 1f1b --steps 1 "
              "--json r.json"
                + std::string{by_sequence ? " --sequence-parallel" : ""} + tiny);
    INFO(ran.err);
    REQUIRE(ran.exit_code == 0);
    CHECK((ran.out.find("2 tensor shards by sequence") != std::string::npos)
          == by_sequence);
    const auto run = json::parse(content_of(folder.path() / "r.json"))["runs"][0];
    CHECK(run["sequence_parallel"] == by_sequence);
    sent[by_sequence] = run["bytes_moved"]["pipeline"];
  }
  // 16 samples of 4 tokens of 8 floats, forward and backward, of each of 2 shards.
  CHECK(sent[0] == 16 * 4 * 8 * 4 * 2 * 2);
  CHECK(sent[0] == 2 * sent[1]);
}

TEST_CASE("weights saved under one mesh load under any other", "[programs]") {
  temporary_folder folder;
  const auto train = [&](const std::string& how) {
    const auto ran = run_program_in(
      folder, "train --quiet --evaluate-samples 10 --mesh " + how + tiny);
    INFO(ran.err);
    REQUIRE(ran.exit_code == 0);
  };
  const std::string save = " --schedule 1f1b --steps 2 --save a.safetensors";
  const std::string load =
    " --init a.safetensors --lr 0 --steps 1 --save b.safetensors";
  SECTION("of gpt") {
    train("data=2,pipe=2,tensor=2 --exchange zero3" + save);
    const std::string mesh = GENERATE(
      "pipe=1", "pipe=1,tensor=2", "pipe=2,tensor=2 --sequence-parallel",
      "data=4,pipe=2 --exchange zero1", "data=2,pipe=2,tensor=2 --exchange zero2",
      "data=2,pipe=2 --exchange server:async");
    train(mesh + load);
  }
  SECTION("of moe") {
    const std::string moe = " --model moe --experts 4";
    train("data=2,pipe=2,expert=2" + moe + save);
    const std::string mesh =
      GENERATE("pipe=1", "data=4,pipe=2,expert=4", "data=2,pipe=1 --exchange zero1");
    train(mesh + moe + load);
  }
  CHECK((tensors_of(folder.path() / "a.safetensors")
         == tensors_of(folder.path() / "b.safetensors")));
}

TEST_CASE("Ctrl-C, SIGTERM and SIGHUP keep weights, results and traces", "[programs]") {
  temporary_folder folder;
  const auto in = [&](const char* name) { return (folder.path() / name).string(); };
  // Clipped by 1, updates wait for one another.
  const auto [signal, clip] = GENERATE(table<int, std::string>(
    {{SIGINT, "0"}, {SIGINT, "1"}, {SIGTERM, "1"}, {SIGHUP, "0"}}));
  CHECK(
    exit_code_after(signal, {"train", "--clip", clip, "--steps", "1000000", "--save",
                             in("w.safetensors"), "--report", in("r"), "--d-model", "8",
                             "--heads", "2", "--seq", "4", "--vocab", "7"})
    == 130);
  const auto run = json::parse(content_of(in("r/results.json")))["runs"][0];
  CHECK(run["ending"] == "interrupted");
  CHECK(run["samples"] < 16'000'000);
  CHECK_FALSE(json::parse(content_of(in("r/trace-1f1b.json")))["traceEvents"].empty());
  const auto updates = run["updates"];
  CHECK(updates == json{updates[0], updates[0], updates[0], updates[0]});
  REQUIRE(updates[0] > 0);
  const auto exact = run_program_in(folder, "train --save v.safetensors --clip " + clip
                                              + " --steps " + updates[0].dump() + tiny);
  CHECK(exact.exit_code == 0);
  const auto saved = content_of(folder.path() / "w.safetensors");
  CHECK((saved == content_of(folder.path() / "v.safetensors")));
  CHECK_THAT(saved.substr(0, 200),
             ContainsSubstring(R"("update":")" + updates[0].dump() + R"(")"));
  const auto next =
    run_program_in(folder, "train --steps 1 --init w.safetensors" + tiny);
  CHECK(next.exit_code == 0);
}

#ifndef TROUPE_SANITIZED // sanitizers take terabytes of addresses
TEST_CASE("a program without memory or threads ends with a sentence", "[programs]") {
  temporary_folder folder;
  for (int kilobytes = 24'000; kilobytes < 120'000; kilobytes += 8'192) {
    const auto result =
      run_program_in(folder, "train --steps 2 --threads 4 --stages 2 --quiet" + tiny,
                     "ulimit -v " + std::to_string(kilobytes));
    INFO(kilobytes << " kB: " << result.err);
    if (result.exit_code == 0
        || result.exit_code == 127) // enough, or not loaded at all
      continue;
    CHECK((result.exit_code == 1 || result.exit_code == 2)); // 2: it is refused
    CHECK(one_line(result.err));
    const auto says = [&](const char* what) {
      return result.err.find(what) != std::string::npos;
    };
    CHECK((says("out of memory") || says("cannot start ") || says("of memory (")));
  }
}
#endif
