// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/other_programs.hpp"
#include "experiments/report/results.hpp"
#include "tests/experiments/tiny_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <sstream>
#include <thread>

namespace troupe::results_table_test {

using Catch::Matchers::ContainsSubstring;
using json = nlohmann::ordered_json;

namespace {

typed_options tiny_options() {
  auto o = tiny::options_of("gpipe,pipedream");
  o.schedules.steps = 2;
  o.run.threads = 1;
  return o;
}

/// The account of a run that ended so, made without running.
run_account account_of(const run_request& request, nanoseconds makespan = 1'000'000) {
  run_account result{.request = &request, .result = {}};
  result.result.sums.makespan = makespan;
  result.result.sums.busy = {makespan / 2};
  result.result.samples = 32;
  result.result.seconds = 1;
  return result;
}

std::vector<run_account> accounts_of(const setup& shared) {
  std::vector<run_account> result;
  for (const auto& request : shared.runs)
    result.push_back(account_of(request));
  return result;
}

/// A cell of a table: the column by name, the row by the schedule at its beginning.
std::string cell(const std::string& table, const std::string& schedule,
                 const std::string& column) {
  std::istringstream lines{table};
  std::string line;
  std::getline(lines, line);
  const auto words = [](const std::string& text) {
    std::vector<std::string> result;
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = std::min(text.find("  ", begin), text.size());
      result.push_back(text.substr(begin, end - begin));
      begin = std::min(text.find_first_not_of(' ', end), text.size());
    }
    return result;
  };
  const auto heads = words(line);
  while (std::getline(lines, line) && !line.starts_with(schedule)) {
  }
  const auto at = std::ranges::find(heads, column) - heads.begin();
  return words(line).at(static_cast<std::size_t>(at));
}

std::optional<double> share_of(const run_account& run) {
  return other_programs_share(run.request->plan, run.result);
}

std::string sentence_of(const run_account& run) {
  return warning_of(run.request->plan, run.result, run.modelled).value().sentence();
}

json json_of(const run_account& run) {
  return other_programs_json(run.request->plan, run.result, run.modelled);
}

} // namespace

TEST_CASE("losses of all schedules are of equally many samples", "[results]") {
  const auto shared = *tiny::set_up_training(tiny_options());
  auto runs = accounts_of(shared);
  runs[0].result.loss = {5, 3};
  runs[0].result.loss_samples = {16, 32};
  runs[1].result.loss = {5, 1, 4, 2};
  runs[1].result.loss_samples = {12, 18, 24, 32}; // 12, 6, 6, 8
  auto table = results_table(shared, runs);
  CHECK(cell(table, "gpipe", "loss") == "3.0000");
  // 8 samples of loss 2, 6 of loss 4 and 2 of loss 1.
  CHECK(cell(table, "pipedream", "loss") == "2.6250");
  CHECK_THAT(table, ContainsSubstring("loss: mean over the last 16 samples"));
  // Where one run's entry covers more samples, all runs' means cover as many.
  runs[0].result.loss = {5};
  runs[0].result.loss_samples = {32};
  table = results_table(shared, runs);
  CHECK(cell(table, "gpipe", "loss") == "5.0000");
  CHECK(cell(table, "pipedream", "loss") == "3.3125"); // (12*5 + 6*1 + 6*4 + 8*2) / 32
  CHECK_THAT(table, ContainsSubstring("loss: mean over the last 32 samples"));
}

TEST_CASE("every row says what its times are", "[results]") {
  auto o = tiny_options();
  const auto legend = [&](const std::vector<run_account>& runs, const setup& shared) {
    return results_table(shared, runs);
  };
  const auto shared = *tiny::set_up_training(o);
  auto runs = accounts_of(shared);
  runs[0].modelled = true;
  const auto table = legend(runs, shared);
  CHECK(cell(table, "gpipe", "timing") == "modelled");
  CHECK(cell(table, "pipedream", "timing") == "shared"); // one thread for four ranks
  CHECK_THAT(table, ContainsSubstring("fewer threads than ranks")
                      && ContainsSubstring("\nshared: ")
                      && !ContainsSubstring("\nvirtual: "));
  o.run.threads = 1024; // with modelled times: on fewer cores than ranks, or on nodes
  CHECK_THAT(legend(runs, *tiny::set_up_training(o)),
             ContainsSubstring(std::thread::hardware_concurrency() < 4
                                 ? "there are fewer cores than ranks"
                                 : "nodes have clocks of their own"));
  o.mesh.stages = 1;
  const auto alone = *tiny::set_up_training(o);
  CHECK(cell(legend(accounts_of(alone), alone), "gpipe", "timing") == "measured");
  o.run.clock = "virtual";
  const auto counted = *tiny::set_up_training(o);
  const auto by_operations = legend(accounts_of(counted), counted);
  CHECK(cell(by_operations, "gpipe", "timing") == "virtual");
  CHECK_THAT(by_operations, ContainsSubstring("100 operations a nanosecond")
                              && !ContainsSubstring("\nshared: "));
  o.cost = "F=1,B=2";
  const auto costly = *tiny::set_up_training(o);
  CHECK_THAT(legend(accounts_of(costly), costly),
             ContainsSubstring("--cost F=1,B=2 (milliseconds)"));
}

TEST_CASE("other programs have a column, and a warning above a tenth of the time",
          "[results]") {
  auto o = tiny_options();
  const auto shared = *tiny::set_up_training(o);
  auto runs = accounts_of(shared);
  CHECK_THAT(results_table(shared, runs), !ContainsSubstring("other programs"));
  const auto disturb = [](run_account& run, std::vector<nanoseconds> taken) {
    run.result.sums.wall_time = {400, 100, 250, 250};
    run.result.sums.off_processor_time = std::move(taken);
  };
  disturb(runs[0], {70, 0, 0, 30}); // a tenth of all ranks' time, a sixth of one rank's
  disturb(runs[1], {70, 0, 0, 31});
  runs[1].modelled = true;
  const auto table = results_table(shared, runs);
  CHECK(cell(table, "gpipe", "other programs") == "10.0%");
  CHECK(cell(table, "pipedream", "other programs") == "10.1%");
  const std::string whole =
    "\nwarning: other programs took more than 10% of the actions' wall time of ";
  const std::string modelled = ":\nrates are those of a busy machine; makespan, idle "
                               "and bubble leave this time out\n",
                    measured = ":\ntimes and rates are those of a busy machine\n";
  CHECK_THAT(table, ContainsSubstring(whole + "pipedream" + modelled)
                      && !ContainsSubstring(measured));
  runs[1].modelled = false;
  CHECK_THAT(results_table(shared, runs),
             ContainsSubstring(whole + "pipedream" + measured));
  disturb(runs[0], {70, 0, 0, 40});
  CHECK_THAT(results_table(shared, runs),
             ContainsSubstring(whole + "gpipe, pipedream" + measured));
  disturb(runs[0], {70, 0, 0, 30});
  const auto text = results_json(*parse(o, true), shared, runs);
  CHECK_THAT(text, ContainsSubstring("\"share\": 0.1,")
                     && ContainsSubstring("\"share\": 0.101,")
                     && ContainsSubstring("\"warning\": null")
                     && ContainsSubstring("\"warning\": \"other programs took 10.1%"));
  runs[0].result.outcome = ending::failed;
  CHECK_FALSE(share_of(runs[0]));
  o.run.clock = "virtual";
  const auto counted = *tiny::set_up_training(o);
  auto of_virtual_clock = accounts_of(counted);
  disturb(of_virtual_clock[0], {70, 0, 0, 30});
  CHECK_FALSE(share_of(of_virtual_clock[0]));
  CHECK_THAT(results_table(counted, of_virtual_clock),
             !ContainsSubstring("other programs"));
}

TEST_CASE("times without a processor are unknown of a GPU, and nodes are named",
          "[results]") {
  const auto shared = *tiny::set_up_training(tiny_options());
  auto request = shared.runs[0];
  auto run = account_of(request);
  run.result.sums.wall_time = {400, 100, 250, 250};
  run.result.sums.off_processor_time = {100, 100, 25, 0};
  request.plan.machine.processors = {processor{.gpu = 0}, processor{}};
  CHECK(*share_of(run) == 100. / 350); // ranks 1 and 3
  CHECK(json_of(run).dump()
        == R"({"share":)" + json(100. / 350).dump()
             + R"(,"seconds":[null,1e-07,null,0.0],"warning":")" + sentence_of(run)
             + "\"}");
  run.result.processes = 2;
  CHECK_THAT(sentence_of(run),
             ContainsSubstring("other programs, and nodes on the same machine, took"));
  request.plan.machine.processors = {processor{.gpu = 0}};
  CHECK_FALSE(share_of(run));
  CHECK(json_of(run).is_null());
}

TEST_CASE("threads of a run above the number of cores are named beside other programs",
          "[results]") {
  auto o = tiny_options();
  o.mesh.stages = 4;
  o.run.threads = 1024;
  const auto shared = *tiny::set_up_training(o);
  auto run = account_of(shared.runs[0]);
  run.result.sums.wall_time = {4, 4, 4, 4};
  run.result.sums.off_processor_time = {1, 1, 1, 1};
  const auto cores = std::thread::hardware_concurrency();
  CHECK_THAT(sentence_of(run),
             ContainsSubstring(cores < 4 ? "and the run's 4 threads on "
                                             + std::to_string(cores) + " cores, took"
                                         : "other programs took 25.0%"));
}

TEST_CASE("times stand in a unit in which the shortest run is no 0", "[results]") {
  const auto shared = *tiny::set_up_training(tiny_options());
  const auto table = [&](nanoseconds first, nanoseconds second) {
    return results_table(
      shared, {account_of(shared.runs[0], first), account_of(shared.runs[1], second)});
  };
  CHECK(cell(table(9'000, 4'000'000'000), "gpipe", "makespan us") == "9.000");
  CHECK(cell(table(99, 99), "gpipe", "makespan ns") == "99.000");
  CHECK(cell(table(2'000'000, 3'000'000), "gpipe", "makespan ms") == "2.000");
  CHECK(cell(table(100'000'000, 3'000'000'000), "gpipe", "makespan s") == "0.100");
}

TEST_CASE("runs that were ended, and those not begun, are marked", "[results]") {
  auto o = tiny_options();
  o.schedules.names = {"naive,gpipe,1f1b,pipedream"};
  const auto shared = *tiny::set_up_training(o);
  auto runs = accounts_of(shared);
  runs.pop_back();
  runs[0].result.outcome = ending::failed;
  runs[1].evaluated_to_end = false;
  runs[2].result.outcome = ending::interrupted;
  runs[2].result.samples = 7;
  const auto table = results_table(shared, runs);
  CHECK_THAT(
    table, ContainsSubstring("\nnaive (failed) ")
             && ContainsSubstring("\ngpipe (interrupted) ")
             && ContainsSubstring("\n1f1b (interrupted) ")
             && ContainsSubstring("\npipedream (not begun) ")
             && ContainsSubstring("1f1b: 7 of 32 samples")
             && ContainsSubstring("gpipe: training complete, evaluation interrupted"));
  CHECK(cell(table, "pipedream", "timing") == "-");
  CHECK(cell(table, "naive", "makespan ms") == "-");
  const auto text = results_json(*parse(o, true), shared, runs);
  CHECK_THAT(text, ContainsSubstring("\"why\": \"it had not begun\""));
}

} // namespace troupe::results_table_test
