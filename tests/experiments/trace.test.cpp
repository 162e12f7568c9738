// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/trace.hpp"

#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <map>

namespace troupe::trace_test {

using nlohmann::json;

namespace {

json events_of(const run_plan& plan) {
  return json::parse(trace_json(plan, perform(plan).actions, "a title"))["traceEvents"];
}

json with_phase(const json& events, const std::string& phase) {
  auto result = json::array();
  for (const auto& e : events)
    if (e["ph"] == phase)
      result.push_back(e);
  return result;
}

} // namespace

TEST_CASE("a trace has every action as a slice of its rank", "[trace]") {
  const auto slices =
    with_phase(events_of(tiny::simulation(one_f_one_b(), {3, 4, 1})), "X");
  CHECK(slices.size() == 3 * (4 + 4 + 1));
  std::map<std::string, std::string> colours;
  for (const auto& s : slices) {
    const std::string kind = s["cat"];
    const auto [known, added] = colours.emplace(kind, s["cname"]);
    // g++ 14 cannot compare a string with a json value.
    CHECK(known->second == s["cname"].get<std::string>());
    if (kind != "U")
      CHECK(s["dur"] == (kind == "F" ? 1000 : 2000)); // microseconds
  }
  CHECK(colours.size() == 3);
  CHECK(slices[0]["name"] == "F0");
  CHECK(slices[0]["ts"] == 0);
}

TEST_CASE(
  "every message is an arrow from the slice that sent it to the one that used it",
  "[trace]") {
  const auto events = events_of(tiny::simulation(gpipe(), {3, 4, 1}));
  const auto starts = with_phase(events, "s"), ends = with_phase(events, "f");
  REQUIRE(starts.size() == 2 * 2 * 4); // two boundaries, in both directions
  REQUIRE(ends.size() == starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    CHECK(starts[i]["id"] == ends[i]["id"]);
    CHECK(std::abs(starts[i]["tid"].get<int>() - ends[i]["tid"].get<int>()) == 1);
    CHECK(starts[i]["ts"] <= ends[i]["ts"]);
  }
}

TEST_CASE("counters of activations rise to the peak and fall to nothing", "[trace]") {
  const auto counts =
    with_phase(events_of(tiny::simulation(one_f_one_b(), {3, 4, 1})), "C");
  std::map<std::string, int> peak, last;
  for (const auto& c : counts)
    for (const auto& [kind, value] : c["args"].items())
      if (kind == "activations") {
        auto& most = peak[c["name"]];
        most = std::max(most, value.get<int>());
        last[c["name"]] = value;
      }
  CHECK(peak
        == std::map<std::string, int>{{"activations of rank 0", 3},
                                      {"activations of rank 1", 2},
                                      {"activations of rank 2", 1}});
  for (const auto& [name, value] : last)
    CHECK(value == 0);
}

TEST_CASE("a long run's trace ends after so many actions a rank", "[trace]") {
  auto plan = tiny::simulation(gpipe(), {2, 50, 2});
  plan.keep.record = false;
  plan.keep.first_actions = 10;
  const auto result = perform(plan);
  CHECK(result.actions_cut);
  CHECK(with_phase(events_of(plan), "X").size() == 20);
  plan.keep.first_actions = 202; // two batches
  CHECK_FALSE(perform(plan).actions_cut);
  CHECK(with_phase(events_of(plan), "X").size() == 404);
}

TEST_CASE("a trace has the title that it is given", "[trace]") {
  const auto names = with_phase(events_of(tiny::simulation(gpipe(), {2, 2, 1})), "M");
  CHECK(names[0]["name"] == "process_name");
  CHECK(names[0]["args"]["name"] == "a title");
}

} // namespace troupe::trace_test
