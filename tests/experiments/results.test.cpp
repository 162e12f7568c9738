// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/results.hpp"

#include "tests/experiments/run_program.hpp"
#include "tests/experiments/tiny_options.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <cmath>

namespace troupe::results_test {

using Catch::Matchers::ContainsSubstring;
using json = nlohmann::ordered_json;

namespace {

typed_options tiny_options(const std::string& clock) {
  auto o = tiny::options_of("1f1b,pipedream:vertical_sync=on");
  o.schedules.steps = 3;
  o.run.clock = clock;
  o.output.command = {"train", "--some", "option"};
  return o;
}

struct told {
  std::string text, table;
};

told tell(const options& o) {
  const auto shared = *set_up(o);
  std::vector<run_account> accounts;
  for (const auto& request : shared.runs)
    accounts.push_back({.request = &request, .result = perform(request.plan)});
  return {results_json(o, shared, accounts), results_table(shared, accounts)};
}

told tell_training(const std::string& clock) {
  return tell(*parse(tiny_options(clock), true));
}

std::vector<std::string> keys_of(const json& object) {
  std::vector<std::string> result;
  for (const auto& [key, value] : object.items())
    result.push_back(key);
  return result;
}

} // namespace

TEST_CASE("results.json has DESIGN.md's keys in their order", "[results]") {
  const auto all = json::parse(tell_training("real").text);
  CHECK(keys_of(all)
        == std::vector<std::string>{"troupe", "command", "model", "data", "seed",
                                    "data_seed", "init_seed", "resumed_from", "runs",
                                    "left_out"});
  CHECK(all["command"] == json{"train", "--some", "option"});
  CHECK(all["model"]["name"] == "gpt");
  const auto& run = all["runs"][1];
  CHECK(keys_of(run)
        == std::vector<std::string>{"schedule",
                                    "parameters",
                                    "options",
                                    "ending",
                                    "clock",
                                    "device",
                                    "precision",
                                    "bf16_path",
                                    "timing",
                                    "stages",
                                    "ranks",
                                    "pipeline_ranks",
                                    "replicas",
                                    "exchange",
                                    "compress",
                                    "tensor",
                                    "sequence_parallel",
                                    "expert",
                                    "recompute",
                                    "microbatches",
                                    "microbatch_sizes",
                                    "sequence_lengths",
                                    "steps",
                                    "steps_before",
                                    "steps_before_last_start",
                                    "samples",
                                    "updates",
                                    "seconds",
                                    "samples_per_second",
                                    "tokens_per_second",
                                    "makespan",
                                    "busy",
                                    "idle",
                                    "bubble",
                                    "bubble_ideal",
                                    "span_idle",
                                    "other_programs",
                                    "peak_activations",
                                    "peak_bytes",
                                    "peak_bytes_of",
                                    "bytes_moved",
                                    "gpu_groups",
                                    "gpu_libraries",
                                    "sums",
                                    "weight_versions",
                                    "staleness",
                                    "exchange_staleness",
                                    "loss",
                                    "loss_samples",
                                    "loss_seconds",
                                    "loss_every",
                                    "gradient_norms",
                                    "learning_rates",
                                    "target",
                                    "after_shortest",
                                    "verified",
                                    "evaluation",
                                    "evaluations",
                                    "experts"});
  CHECK(run["schedule"] == "pipedream");
  CHECK(run["parameters"] == json{{"vertical_sync", "on"}});
  CHECK(run["options"]["--optimizer"] == "adamw"); // the default
  CHECK(run["options"]["--lr"] == "0.001");
  CHECK(run["options"]["--betas"] == "0.9,0.999");
  CHECK(run["clock"] == "real");
  CHECK(run["device"] == "cpu");
  CHECK(run["samples"] == 48);
  CHECK(run["seconds"] > 0);
  CHECK(run["busy"].size() == 4);
  CHECK(run["loss"].size() == 24); // one update for each microbatch
  CHECK(all["runs"][0]["loss"].size() == 3);
  CHECK(run["staleness"]["max"] == json{3, 3, 3, 3});
  CHECK(run["weight_versions"] == json{4, 4, 4, 4});
  CHECK(run["evaluation"]["loss"].is_null()); // nothing was evaluated: not 0
}

TEST_CASE("in virtual time the same run gives the same bytes", "[results]") {
  const auto first = tell_training("virtual").text;
  CHECK(first == tell_training("virtual").text);
  const auto run = json::parse(first)["runs"][0];
  CHECK(run["clock"] == "virtual");
  CHECK(run["seconds"].is_null());
  CHECK(run["samples_per_second"].get<double>() == 48 / run["makespan"].get<double>());
}

TEST_CASE("a simulation knows no losses and says so", "[results]") {
  typed_options o;
  o.schedules.names = {"1f1b"};
  o.mesh.stages = 2;
  o.schedules.microbatches = 4;
  o.schedules.steps = 1;
  o.cost = "F=1,B=2";
  const auto result = tell(*parse(o, false));
  const auto run = json::parse(result.text)["runs"][0];
  CHECK(run["device"] == "none");
  CHECK(run["makespan"] == 0.015);
  CHECK(run["idle"] == json{0.003, 0.003});
  CHECK(run["bubble"] == 0.2);
  CHECK(run["bubble_ideal"] == 0.25);
  for (const char* key : {"options", "samples", "loss", "loss_samples", "loss_seconds",
                          "peak_bytes", "peak_bytes_of"})
    CHECK(run[key].is_null());
  CHECK_THAT(result.table, ContainsSubstring("makespan ms"));
  CHECK_THAT(result.table, ContainsSubstring("15.000"));
}

TEST_CASE("a loss was known when the last forward of its minibatch had ended",
          "[results]") {
  temporary_folder folder;
  const auto ran =
    run_program_in(folder, "compare --schedules gpipe,pipedream --stages 3 --clock "
                           "virtual --cost F=1,B=2 --d-model 8 --heads 2 --seq 4 "
                           "--layers 4 --vocab 11 --batch 8 --microbatches 4 --steps 2 "
                           "--report r --json out.json --quiet");
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const auto all = json::parse(content_of(folder.path() / "out.json"));
  const auto& runs = all["runs"];
  // GPipe: after M + S - 1 forwards, of a batch that takes (M + S - 1)(F + B).
  CHECK(runs[0]["loss_seconds"] == json{0.006, 0.024});
  // PipeDream: one microbatch after another, each with an update; the last stage is
  // never idle.
  CHECK(runs[1]["loss_seconds"]
        == json{0.003, 0.006, 0.009, 0.012, 0.015, 0.018, 0.021, 0.024});
  for (const auto& run : runs)
    for (const auto& peak : run["peak_bytes_of"])
      CHECK(peak.size() == 3);
  std::int64_t most = 0;
  for (const auto& of : runs[0]["peak_bytes_of"])
    most += of[0].get<std::int64_t>();
  CHECK(most >= runs[0]["peak_bytes"][0].get<std::int64_t>()); // not all at one time
  // AdamW: two moments for each parameter. GPipe's last rank holds four microbatches,
  // PipeDream's last rank one.
  const auto sum_of = [&](const char* use) {
    std::int64_t sum = 0;
    for (const auto& peak : runs[0]["peak_bytes_of"][use])
      sum += peak.get<std::int64_t>();
    return sum;
  };
  const auto bytes = 4 * all["model"]["parameters"].get<std::int64_t>();
  CHECK(sum_of("parameters") >= bytes); // tensors begin at whole lines of the cache
  CHECK(10 * sum_of("parameters") < 11 * bytes);
  CHECK(sum_of("gradients") == sum_of("parameters"));
  CHECK(sum_of("optimizer") == 2 * sum_of("parameters"));
  CHECK(sum_of("checkpoint") == 0);
  const auto& of = runs[0]["peak_bytes_of"];
  const auto& pipedream = runs[1]["peak_bytes_of"];
  CHECK(of["passing"] == pipedream["passing"]);
  CHECK(of["activations"][2].get<double>()
        > 2 * pipedream["activations"][2].get<double>());
}

TEST_CASE("numbers of a run that started again count from its first start",
          "[results]") {
  const auto o = *parse(tiny_options("virtual"), true);
  const auto shared = *set_up(o);
  auto first = shared.runs.front();
  first.plan.dims.steps = 1;
  auto last = first; // after two steps; the command began after one
  last.plan.dims.batches_before = 2;
  std::vector<run_account> runs{{.request = &last, .result = perform(first.plan)}};
  loss_history losses{16, 9};
  losses.add({{.samples = 16, .loss = 5}, {.samples = 32, .loss = 4}});
  losses.restart(32);
  losses.add({{.samples = 16, .loss = 3}});
  runs.front().losses_of_all_starts = losses.summary();
  const auto run = json::parse(results_json(o, shared, runs))["runs"][0];
  CHECK(run["steps"] == 3);
  CHECK(run["steps_before"] == 1);
  CHECK(run["steps_before_last_start"] == 2);
  CHECK(run["loss"] == json{5, 3});
  CHECK(run["loss_samples"] == json{32, 48});
  CHECK(run["samples"] == 32);
  const auto rate = run["samples_per_second"].get<double>();
  CHECK(std::abs(rate * run["makespan"].get<double>() - 16) < 1e-9);
  CHECK_THAT(results_table(shared, runs), ContainsSubstring("3.0000"));
}

TEST_CASE("a run that was started again has all losses, and no times of them",
          "[results]") {
  const auto o = *parse(tiny_options("virtual"), true);
  const auto shared = *set_up(o);
  const auto& request = shared.runs.front();
  std::vector<run_account> accounts{
    {.request = &request, .result = perform(request.plan)}};
  const auto told_run = [&] {
    return json::parse(results_json(o, shared, accounts))["runs"][0];
  };
  CHECK(told_run()["loss_seconds"].size() == 3);
  accounts.front().losses_of_all_starts =
    loss_history::series{{4, 3, 2, 1}, {16, 32, 48, 64}, 1, 0};
  const auto run = told_run();
  CHECK(run["loss"] == json{4, 3, 2, 1});
  CHECK(run["loss_samples"] == json{16, 32, 48, 64});
  CHECK(run["loss_seconds"].is_null()); // each start has a separate clock
}

TEST_CASE("losses that are missing in the end are told", "[results]") {
  run_account run{.request = nullptr, .result = {}};
  CHECK(missing_losses(run).empty());
  run.losses_of_all_starts = loss_history::series{.samples = {48}, .missing = 24};
  CHECK_THAT(missing_losses(run), ContainsSubstring("24 samples were lost with nodes"));
  run.result.missing_losses = 2;
  run.result.samples = 16; // samples of the last start
  CHECK_THAT(missing_losses(run), ContainsSubstring("2 microbatches have not arrived"));
  CHECK_THAT(missing_losses(run), ContainsSubstring("first 48 samples"));
  run.result.outcome = ending::failed; // the failure's sentence says more
  CHECK(missing_losses(run).empty());
}

TEST_CASE("an evaluation on what was trained on is told as such", "[results]") {
  temporary_folder folder;
  const auto path = folder.write("a.txt", std::string(300, '\1')).string();
  for (const bool in_order : {false, true}) {
    auto o = tiny_options("virtual");
    o.data.text = "text:" + path + (in_order ? ",order=sequential" : "");
    const auto result = tell(*parse(o, true));
    CHECK(json::parse(result.text)["data"]["evaluates_training_data"] == in_order);
    CHECK((result.table.find("evaluated: on data that the training reads too")
           != std::string::npos)
          == in_order);
  }
}

TEST_CASE("the table says what bubble means, and the floor of the data", "[results]") {
  const auto table = tell_training("real").table;
  CHECK_THAT(table, ContainsSubstring("bubble: mean over ranks of idle / makespan"));
  CHECK_THAT(table, ContainsSubstring("can reach a loss below"));
  CHECK_THAT(table, ContainsSubstring("pipedream:vertical_sync=on"));
}

TEST_CASE("in virtual time samples and tokens a second are the virtual clock's",
          "[results]") {
  const auto run = json::parse(tell_training("virtual").text)["runs"][0];
  const double makespan = run["makespan"], samples = run["samples_per_second"],
               tokens = run["tokens_per_second"];
  REQUIRE(makespan > 0);
  CHECK(std::abs(samples * makespan - 48) < 1e-9);
  CHECK(std::abs(tokens * makespan - 48 * 4) < 1e-9);
}

} // namespace troupe::results_test
