// SPDX-License-Identifier: BSD-3-Clause
// Schedules that are read from files and run by actors: PyTorch's own, and unusual
// ones.

#include "actors/proof/proof.hpp"
#include "schedules/files/schedule_file.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <fstream>
#include <sstream>

namespace troupe::filed_schedules_test {

namespace {

filed_schedule pytorch(const std::string& name) {
  std::ifstream file{TROUPE_GOLDEN "/pytorch_csv/" + name + ".csv"};
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  return *read_schedule("file:" + name, text.str());
}

void check_proofs(run_plan plan) {
  REQUIRE(validation_error(plan).empty());
  const auto result = perform(plan);
  INFO(result.failure);
  REQUIRE(result.outcome == ending::finished);
  for (const auto& p : prove(plan, result)) {
    INFO(p.name << ": " << p.detail);
    CHECK(!p.fails());
  }
}

} // namespace

TEST_CASE("PyTorch's breadth-first file, and its others, are proved right", "[files]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const std::string name = GENERATE("interleaved-4x8", "interleaved_zb-4x8",
                                    "looped_bfs-4x8", "zbv-4x8", "dualpipev-4x10");
  const auto filed = pytorch(name);
  INFO(name);
  auto dims = filed.dims;
  dims.steps = 2;
  auto plan = tiny::training_of(filed.sch, dims, clock);
  check_proofs(plan);
  for (const char* exchange : {"ring", "zero2"}) {
    plan.mesh[axis::data] = 2;
    plan.exchange = *parse_exchange(exchange);
    plan.work->batch = 4 * dims.microbatches;
    check_proofs(plan);
  }
}

TEST_CASE("stages may sum in orders of their own", "[files]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  const auto filed = *read_schedule("odd", "0F0,0F1,0F2,0B2,0B0,0B1\n"
                                           "1F0,1F1,1F2,1B0,1B2,1B1\n"
                                           "2F0,2F1,2F2,2B2,2B0,2B1\n");
  CHECK(filed.sch.sums_in_any_order);
  auto dims = filed.dims;
  dims.steps = 3;
  check_proofs(tiny::training_of(filed.sch, dims, clock));
}

TEST_CASE("an asynchronous file is proved by its record", "[files]") {
  const auto clock = GENERATE(from_range(tiny::clocks()));
  for (const char* weights : {"stash", "vertical_sync", "latest"}) {
    const auto filed = *read_schedule(
      "mine",
      "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n"
      "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n",
      {{"weights", weights}, {"update_every", "1"}, {"microbatches", "2"}});
    INFO(weights);
    check_proofs(tiny::training_of(filed.sch, filed.dims, clock));
  }
}

} // namespace troupe::filed_schedules_test
