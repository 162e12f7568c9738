// SPDX-License-Identifier: BSD-3-Clause
// Tests --mesh and the options that depend on --mesh: the number of ranks along each
// axis.

#include "experiments/options/mesh_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace troupe::mesh_options_test {

using Catch::Matchers::ContainsSubstring;

namespace {

mesh_options mesh_of(const std::string& axes) {
  return parse({.stages = 4, .axes = axes}).value();
}

} // namespace

TEST_CASE("a mesh is data replicas, stages, tensor shards and experts",
          "[mesh_options]") {
  CHECK(mesh_of("").ranks() == 4);
  CHECK(mesh_of("").data == 1);
  CHECK(mesh_of("data=2").stages == 4);
  CHECK(mesh_of("data=2").ranks() == 8);
  const auto all = mesh_of("pipe=3,tensor=5,data=2,expert=7");
  CHECK(all.data == 2);
  CHECK(all.stages == 3);
  CHECK(all.tensor == 5);
  CHECK(all.expert == 7);
  CHECK(all.ranks() == 30);
}

TEST_CASE("sequences are shared out where there are tensor shards", "[mesh_options]") {
  CHECK_FALSE(parse({.sequence_parallel = true})->sequence_parallel);
  CHECK(parse({.axes = "tensor=2", .sequence_parallel = true})->sequence_parallel);
}

TEST_CASE("an exchange and a split are parsed with the mesh", "[mesh_options]") {
  CHECK(parse(typed_mesh{})->exchange.name == "ring");
  CHECK(parse({.exchange = "server:staleness=3"})->exchange.staleness == 3);
  CHECK(parse(typed_mesh{})->exchange.compression == &fp32_codec());
  CHECK(parse({.compress = "bf16"})->exchange.compression == find_codec("bf16"));
  CHECK_THAT(
    parse({.compress = "bf15"}).error(),
    ContainsSubstring("there is no compression 'bf15' (did you mean 'bf16'?)"));
  CHECK(parse({.split = "2,2,1,1"})->split == std::vector<int>{2, 2, 1, 1});
  CHECK_THAT(parse({.exchange = "star"}).error(), ContainsSubstring("there are naive"));
  CHECK_THAT(parse({.split = "2,0"}).error(),
             ContainsSubstring("write measured, or numbers"));
}

TEST_CASE("a split is sizes, costs, or to be measured", "[mesh_options]") {
  const auto by_costs = parse({.split = "costs=1.5/1/0.25"});
  CHECK(by_costs->unit_costs == std::vector{1.5, 1.0, 0.25});
  CHECK(by_costs->split.empty());
  CHECK_FALSE(by_costs->measures_units);
  CHECK(parse({.split = "measured"})->measures_units);
  CHECK_FALSE(parse(typed_mesh{})->measures_units);
  for (const char* bad : {"costs=", "costs=1/0", "costs=1/-2", "costs=1,2", "costs=x",
                          "costs=1e999", "costs=1/nan", "costs"}) {
    INFO(bad);
    CHECK_FALSE(parse({.split = bad}).has_value());
  }
}

} // namespace troupe::mesh_options_test
