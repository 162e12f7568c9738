// SPDX-License-Identifier: BSD-3-Clause
// Tests that report.html shows the contents of results.json and of the traces.

#include "tests/experiments/run_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace troupe::page_test {

using nlohmann::json;

namespace {

/// The data that the page draws, as the page's script reads the data.
json shown_by(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const auto from = page.find(begin);
  REQUIRE(from != std::string::npos);
  const auto data = from + begin.size();
  return json::parse(page.substr(data, page.find("</script>", data) - data));
}

/// Name, start and length in nanoseconds of each of a rank's actions, from the trace.
using slices = std::vector<std::tuple<std::string, std::int64_t, std::int64_t>>;

slices traced(const std::filesystem::path& file, std::size_t rank) {
  slices result;
  const auto trace = json::parse(content_of(file));
  for (const auto& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["tid"] == rank)
      result.emplace_back(event["name"].get<std::string>(),
                          std::llround(1000 * event["ts"].get<double>()),
                          std::llround(1000 * event["dur"].get<double>()));
  return result;
}

slices drawn(const json& numbers, const std::string& letters) {
  slices result;
  std::int64_t now = 0;
  for (std::size_t i = 0; i < numbers.size(); i += 9) {
    const std::int64_t start = now + numbers[i + 5].get<std::int64_t>(),
                       takes = numbers[i + 6];
    result.emplace_back(letters[numbers[i].get<std::size_t>()]
                          + std::to_string(numbers[i + 2].get<int>()),
                        start, takes);
    now = start + takes;
  }
  return result;
}

} // namespace

TEST_CASE("the page draws what the traces say, and has the results", "[page]") {
  temporary_folder folder;
  const std::string typed =
    GENERATE("simulate --schedules 1f1b,zb-v,dualpipe,ampnet --stages 4 "
             "--microbatches 8 --steps 3 --cost F=1,B=2,latency=0.3 --report r",
             "compare --schedules gpipe,chimera --mesh data=2,pipe=2 --d-model 8 "
             "--heads 2 --seq 4 --layers 4 --vocab 11 --batch 16 --microbatches 8 "
             "--steps 2 --report r");
  const auto ran = run_program_in(folder, typed);
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const auto page = content_of(folder.path() / "r" / "report.html");
  const auto shown = shown_by(page);
  const auto results = json::parse(content_of(folder.path() / "r" / "results.json"));
  CHECK(shown["results"] == results);
  REQUIRE(shown["runs"].size() == results["runs"].size());
  for (std::size_t i = 0; i < shown["runs"].size(); ++i) {
    const auto& run = shown["runs"][i];
    CHECK(run["timing"] == results["runs"][i]["timing"]);
    CHECK(run["cut"] == 0);
    const auto trace =
      folder.path() / "r" / ("trace-" + run["text"].get<std::string>() + ".json");
    REQUIRE(run["ranks"].size() == results["runs"][i]["ranks"]);
    for (std::size_t rank = 0; rank < run["ranks"].size(); ++rank) {
      INFO(run["text"] << ", rank " << rank);
      const auto all = drawn(run["ranks"][rank], shown["letters"]);
      CHECK_FALSE(all.empty());
      CHECK((all == traced(trace, rank)));
    }
  }
  // The page needs no other file, and a browser lets the page load none.
  CHECK(page.find("content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
                  "'unsafe-inline'\"")
        != std::string::npos);
}

TEST_CASE("the page of a long run has its first minibatches, and says so", "[page]") {
  temporary_folder folder;
  const auto ran = run_program_in(folder, "simulate --schedule 1f1b --stages 4 "
                                          "--microbatches 100 --steps 60 --report r");
  REQUIRE(ran.exit_code == 0);
  const auto page = content_of(folder.path() / "r" / "report.html");
  const auto run = shown_by(page)["runs"][0];
  CHECK(run["cut"] == 5000);
  for (const auto& rank : run["ranks"])
    CHECK(rank.size() == 9 * 5000);
  CHECK(page.size() < 1'500'000);
}

TEST_CASE("the page of a resumed run has as many actions as that of a fresh one",
          "[page]") {
  temporary_folder folder;
  const std::string typed =
    "train --schedule pipedream --stages 4 --d-model 8 --heads 2 "
    "--seq 4 --layers 4 --vocab 11 --batch 64 --microbatches 64 "
    "--clock virtual --checkpoint c --checkpoint-every 30 "
    "--quiet --report ";
  const auto cut_of = [&](const std::string& more) {
    const auto ran = run_program_in(folder, typed + more);
    INFO(ran.err);
    REQUIRE(ran.exit_code == 0);
    const auto report = more.substr(0, 1);
    return shown_by(
      content_of(folder.path() / report / "report.html"))["runs"][0]["cut"];
  };
  constexpr int ranks = 4; // each with 3 x 64 x 30 actions
  CHECK(cut_of("a --steps 30") == 20'000 / ranks);
  CHECK(cut_of("b --steps 60 --resume c") == 20'000 / ranks);
}

TEST_CASE("a page has the orders of a schedule at several sizes", "[page]") {
  temporary_folder folder;
  const auto ran = run_program_in(
    folder,
    "simulate --schedules gpipe,zb-v,chimera,ampnet --stages 4 --microbatches 4 "
    "--steps 5 --report r");
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const auto shown = shown_by(content_of(folder.path() / "r" / "report.html"));
  for (const auto& run : shown["runs"]) {
    INFO(run["text"]);
    const auto& orders = run["orders"];
    REQUIRE(orders.size() > 4);
    CHECK(orders[0]["ranks"] == 4); // the run's orders are the first
    CHECK(orders[0]["microbatches"] == 4);
    std::set<std::pair<int, int>> sizes;
    for (const auto& one : orders) {
      CHECK(one["steps"] == 3);
      CHECK(one["rows"].size() == one["ranks"].get<std::size_t>());
      sizes.emplace(one["ranks"], one["microbatches"]);
    }
    CHECK(sizes.contains({8, 8}));
    CHECK(sizes.size() == orders.size());
  }
  const auto row = [&](int run, int rank) {
    return shown["runs"][run]["orders"][0]["rows"][rank].get<std::string>();
  };
  CHECK(row(0, 3).starts_with("3F0 3F1 3F2 3F3 3B0 3B1 3B2 3B3 3U3 "));
  CHECK(row(1, 0).starts_with("0F0 0F1 ")); // and the last stage in the end
  CHECK(row(1, 0).find("7F0 7I0 ") != std::string::npos);
  CHECK(row(2, 0).find("1:3F2 1:3B2 ") != std::string::npos);
  CHECK(row(3, 0).empty()); // a local rule has no order
}

TEST_CASE("nothing that a user names ends the page's data", "[page]") {
  temporary_folder folder;
  const auto ran =
    run_program_in(folder, "simulate --schedule gpipe --stages 2 --microbatches 2 "
                           "--report '</script><!--'");
  INFO(ran.err);
  REQUIRE(ran.exit_code == 0);
  const auto page = content_of(folder.path() / "<" / "script><!--" / "report.html");
  CHECK(shown_by(page)["results"]["command"].back() == "</script><!--");
}

} // namespace troupe::page_test
