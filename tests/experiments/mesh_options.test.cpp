// --mesh and what belongs to it: how many ranks there are along each axis.

#include "experiments/options/mesh_options.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace troupe;
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
  CHECK(parse({})->exchange.name == "ring");
  CHECK(parse({.exchange = "server:staleness=3"})->exchange.staleness == 3);
  CHECK(parse({.split = "2,2,1,1"})->split == std::vector<int>{2, 2, 1, 1});
  CHECK_THAT(parse({.exchange = "star"}).error(), ContainsSubstring("there are naive"));
  CHECK_THAT(parse({.split = "2,0"}).error(), ContainsSubstring("whole numbers"));
}
