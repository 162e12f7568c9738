// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/results.hpp"
#include "tests/experiments/tiny_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <sstream>
#include <thread>

namespace troupe::results_table_test {

using Catch::Matchers::ContainsSubstring;

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
