// SPDX-License-Identifier: BSD-3-Clause
// Every message of tiny runs, in the order of handling, as golden text: a change of the
// actors' protocol is visible here. To write the file anew, run with
// TROUPE_WRITE_GOLDEN=1, and read the difference.

#include "tests/actors/tiny.hpp"
#include "tests/golden_sections.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <sstream>

namespace troupe::envelopes_test {

namespace {

constexpr const char* file = TROUPE_GOLDEN "/envelopes.txt";

/// Two stages and two microbatches, where updates take a millisecond and messages a
/// quarter of a millisecond; nothing is computed.
run_plan simulated(const std::string& name) {
  auto plan = tiny::simulation(*find_schedule(name), {2, 2, 2}, 1, 2, 1);
  plan.machine.links.inside.latency = 250'000;
  plan.work.simulated().buckets = 2;
  return plan;
}

run_plan by_replicas(const std::string& exchange) {
  auto plan = simulated("1f1b");
  plan.mesh[axis::data] = 2;
  plan.exchange = find_exchange(exchange);
  return plan;
}

run_plan in_shards() {
  auto plan = simulated("1f1b");
  plan.mesh[axis::tensor] = 2;
  return plan;
}

run_plan spread_experts() {
  auto plan = by_replicas("ring");
  plan.mesh[axis::expert] = 2;
  return plan;
}

/// A training whose gradients are clipped by their global norm.
run_plan clipped() {
  auto plan =
    tiny::training_of(*find_schedule("1f1b"), {2, 2, 2}, clock_kind::virtual_time);
  plan.work->optimizer.clip = 0.5;
  plan.keep.record = plan.keep.weights = plan.keep.gradients = false;
  return plan;
}

struct run_to_trace {
  const char* name;
  std::function<run_plan()> plan;
};

const std::vector<run_to_trace> runs{
  {"1f1b", [] { return simulated("1f1b"); }},
  {"1f1b-ring", [] { return by_replicas("ring"); }},
  {"1f1b-zero1", [] { return by_replicas("zero1"); }},
  {"1f1b-zero3", [] { return by_replicas("zero3"); }},
  {"1f1b-servers", [] { return by_replicas("server"); }},
  {"1f1b-tensor", in_shards},
  {"1f1b-experts", spread_experts},
  {"1f1b-clipped", clipped},
  {"2bw", [] { return simulated("2bw"); }},
  {"chimera", [] { return simulated("chimera"); }},
  {"ampnet", [] { return simulated("ampnet"); }},
};

std::string traced(run_plan plan) {
  std::ostringstream out;
  const auto note = [&out](const char* receiver, const std::string& what) {
    out << receiver << " <- " << what << '\n';
  };
  REQUIRE(validation_error(plan).empty());
  const auto result = perform(plan, {.listener = note});
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  return out.str();
}

} // namespace

TEST_CASE("actors send the envelopes of their golden traces, and no others",
          "[envelopes]") {
  const auto& run = GENERATE(from_range(runs));
  const auto sent = traced(run.plan());
  if (std::getenv("TROUPE_WRITE_GOLDEN") != nullptr)
    write_golden_section(file, run.name, sent);
  INFO(run.name);
  CHECK(sent == golden_section(file, run.name));
}

namespace {

/// The number of lines of a trace that contain a text, received by one of some actors.
int count_of(const std::string& trace, const std::vector<std::string>& receivers,
             const std::string& what) {
  std::istringstream lines{trace};
  int result = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto arrow = line.find(" <- ");
    if (arrow != line.npos && line.find(what, arrow) != line.npos)
      result += static_cast<int>(std::ranges::count(receivers, line.substr(0, arrow)));
  }
  return result;
}

} // namespace

// Golden traces that are written anew may have become longer, which this test refuses.
// Messages of the sum and the gather do not count.
TEST_CASE("an update by ZeRO 1 that waits twice takes at most twelve envelopes",
          "[envelopes]") {
  const auto trace = golden_section(file, "1f1b-zero1");
  const std::vector<std::string> actors{"stage 1", "optimizer of stage 1",
                                        "scheduler of rank 1"};
  for (const auto* update : {"U1 of stage 1", "U3 of stage 1"}) {
    CHECK(count_of(trace, {"scheduler of rank 1"}, "paused " + std::string{update})
          == 2);
    const int updated = count_of(trace, {"stage 1"}, "updated") / 2; // two updates
    CHECK(updated == 1);
    CHECK(count_of(trace, actors, update) + updated <= 12);
  }
}

TEST_CASE("a forward in the middle of a pipeline takes six envelopes", "[envelopes]") {
  const auto trace = traced(tiny::simulation(one_f_one_b(), {3, 2, 1}));
  for (const std::string m : {"0", "1"}) {
    const auto forward = "F" + m + " of stage 1";
    const int of_forward = count_of(trace, {"stage 1", "scheduler of rank 1"}, forward);
    const int activations =
      count_of(trace, {"stage 1", "stage 2"}, "activation microbatch " + m);
    CHECK(of_forward + activations == 6);
  }
}

} // namespace troupe::envelopes_test
