#include "experiments/session/progress_line.hpp"

#include "tests/experiments/tiny_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>

using namespace troupe;

TEST_CASE("a simulation's progress ends with all its microbatches", "[progress]") {
  typed_options o;
  o.schedules.steps = 2;
  o.cost = "F=1,B=2,latency=0.1";
  // All of --microbatches in every step; tensor shards have each for themselves.
  const auto [mesh, shards] =
    GENERATE(table<std::string, int>({{"", 1},
                                      {"data=2", 1},
                                      {"data=2,tensor=3", 3},
                                      {"pipe=1", 1},
                                      {"data=4,expert=2", 1}}));
  o.mesh.axes = mesh;
  auto shared = tiny::set_up_simulation(o);
  for (auto& run : shared->runs) {
    const auto done = count_microbatches(run.plan);
    perform(run.plan);
    INFO(mesh << " " << run.text);
    CHECK(std::abs(*done - 2.0 * 8 * shards) < 1e-9);
  }
}
