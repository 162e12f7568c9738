// Every envelope of tiny runs, in the order in which it was opened, as golden text: who
// changes how actors talk sees here what it changes. To write the files anew, run with
// TROUPE_WRITE_GOLDEN=1, and read the difference.

#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

using namespace troupe;

namespace {

/// Two stages and two microbatches, where updates take a millisecond and messages a
/// quarter of one; nothing is computed.
run_plan simulated(const std::string& name) {
  auto plan = tiny::simulation(*find_schedule(name), {2, 2, 2}, 1, 2, 1);
  plan.machines.inside.latency = 250'000;
  plan.sizes.buckets = 2;
  return plan;
}

run_plan by_replicas(const std::string& exchange) {
  auto plan = simulated("1f1b");
  plan.data = 2;
  plan.exchange = find_exchange(exchange);
  return plan;
}

run_plan in_shards() {
  auto plan = simulated("1f1b");
  plan.tensor = 2;
  return plan;
}

run_plan spread_experts() {
  auto plan = by_replicas("ring");
  plan.expert = 2;
  return plan;
}

/// A training whose gradients are clipped by their global norm.
run_plan clipped() {
  auto plan =
    tiny::training_of(*find_schedule("1f1b"), {2, 2, 2}, clock_kind::virtual_time);
  plan.work->optimizer.clip = 0.5;
  plan.keep_record = plan.keep_weights = plan.keep_gradients = false;
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
  REQUIRE(refusal(plan).empty());
  const auto result = perform(plan, {.listener = note});
  INFO(result.failure);
  REQUIRE(result.how == ending::finished);
  return out.str();
}

} // namespace

TEST_CASE("actors send the envelopes of their golden traces, and no others",
          "[envelopes]") {
  const auto& run = GENERATE(from_range(runs));
  const auto path = std::string{TROUPE_GOLDEN "/envelopes/"} + run.name + ".txt";
  const auto sent = traced(run.plan());
  if (std::getenv("TROUPE_WRITE_GOLDEN") != nullptr)
    std::ofstream{path} << sent;
  std::ifstream file{path};
  std::stringstream golden;
  golden << file.rdbuf();
  INFO(path);
  CHECK(sent == golden.str());
}
