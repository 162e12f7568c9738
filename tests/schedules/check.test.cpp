#include "schedules/check.hpp"

#include "schedules/catalog/catalog.hpp"
#include "schedules/program.hpp"
#include "tests/schedules/examples.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>

using namespace troupe;
using Catch::Matchers::ContainsSubstring;

namespace {

/// 1F1B's programs for 2 stages and 2 microbatches, spoiled.
schedule spoiled(std::function<void(int rank, std::vector<action>&)> spoil) {
  return {
    .name = "spoiled",
    .order = batch_by_batch([spoil](int rank, const shape& dims) {
      auto result = generate(one_f_one_b(), {dims.stages, dims.microbatches}, rank);
      spoil(rank, result);
      return result;
    })};
}

program_fault fault_of(const schedule& sch) {
  const auto fault = check(sch, {2, 2});
  REQUIRE(fault.has_value());
  return *fault;
}

} // namespace

TEST_CASE("every schedule of the catalog passes at every size it allows", "[check]") {
  const auto& entry = GENERATE(from_range(catalog()));
  const auto sch = *find_schedule(entry.name);
  for (int stages = 1; stages <= 9; ++stages)
    for (const int microbatches : {1, 2, 3, 4, 7, 8, 12, 32})
      for (const int steps : {1, 3}) {
        const shape dims{stages, microbatches, steps};
        if (!refusal(sch, dims).empty())
          continue;
        const auto fault = check(sch, dims);
        INFO(sch.name << " " << stages << "x" << microbatches << "x" << steps);
        INFO((fault ? to_string(*fault) : ""));
        CHECK_FALSE(fault.has_value());
      }
}

TEST_CASE("a program without an action that another waits for is refused", "[check]") {
  const auto fault = fault_of(spoiled([](int rank, std::vector<action>& p) {
    if (rank == 0)
      std::erase(p, action{op::forward, 0, 0, 1});
  }));
  CHECK_THAT(fault.what,
             ContainsSubstring("F1 of stage 0, which no program contains")
               || ContainsSubstring("B1 of stage 0 comes before its forward"));
}

TEST_CASE("a missing gradient is named with the rank that waits for it", "[check]") {
  const auto fault = fault_of(spoiled([](int rank, std::vector<action>& p) {
    if (rank == 1)
      std::erase(p, action{op::backward, 0, 1, 1});
  }));
  CHECK_THAT(fault.what,
             ContainsSubstring("U1 of stage 1 covers 1 gradients instead of 2"));
  CHECK_THAT(fault.picture,
             ContainsSubstring("> rank 1  .    F0   B0   =    F1   [U1]\n"));
}

TEST_CASE("a deadlock is shown as a cycle", "[check]") {
  const auto fault = fault_of(spoiled([](int rank, std::vector<action>& p) {
    if (rank == 0) // waits for B0 before it makes F1, ...
      std::swap(*std::ranges::find(p, action{op::forward, 0, 0, 1}),
                *std::ranges::find(p, action{op::backward, 0, 0, 0}));
    else // ... which rank 1 wants before it makes B0
      std::swap(*std::ranges::find(p, action{op::forward, 0, 1, 1}),
                *std::ranges::find(p, action{op::backward, 0, 1, 0}));
  }));
  CHECK_THAT(fault.what,
             ContainsSubstring("deadlock: rank 0 waits at B0 for B0 of rank 1; "
                               "rank 1 waits at F1 for F1 of rank 0"));
  CHECK_THAT(fault.picture, ContainsSubstring("> rank 0  F0   [B0]\n"
                                              "  rank 1  .    F0   ?F1\n"));
  CHECK(fault.mend == "run F1 of rank 0, whose input is there, before B0");
}

TEST_CASE("counts must be right", "[check]") {
  CHECK_THAT(fault_of(spoiled([](int, std::vector<action>& p) {
               p.insert(p.begin(), p.front());
             }))
               .what,
             ContainsSubstring("F0 of stage 0 comes twice"));
  CHECK_THAT(fault_of(spoiled([](int rank, std::vector<action>& p) {
               if (rank == 1)
                 p.pop_back();
             }))
               .what,
             ContainsSubstring("gradients of 2 microbatches that no update covers"));
  CHECK_THAT(fault_of(spoiled([](int, std::vector<action>& p) { p.clear(); })).what,
             ContainsSubstring("stage 0 has no forward of microbatch 0"));
  CHECK_THAT(fault_of(spoiled([](int, std::vector<action>& p) {
               p.push_back({op::forward, 0, 0, 2});
             }))
               .what,
             ContainsSubstring("is not in this run"));
}

TEST_CASE("backwards in another order than their microbatches are refused", "[check]") {
  CHECK_THAT(fault_of(spoiled([](int, std::vector<action>& p) {
               std::erase_if(p, [](const action& a) { return a.what == op::backward; });
               for (const int m : {1, 0})
                 p.insert(p.end() - 1, {op::backward, 0, p.front().stage, m});
             }))
               .what,
             ContainsSubstring("is summed after microbatch 1"));
}

TEST_CASE("a forward that reads a version not yet made is refused", "[check]") {
  auto sch = gpipe();
  sch.weights.reads = [](const shape&, int, int microbatch, int) { return microbatch; };
  CHECK_THAT(fault_of(sch).what,
             ContainsSubstring("F1 of stage 0 reads version 1, but this stage has made "
                               "only 0"));
}

TEST_CASE("an action on another rank than its stage's is refused", "[check]") {
  const auto fault = fault_of(spoiled([](int rank, std::vector<action>& p) {
    if (rank == 1)
      p.push_back({op::forward, 0, 0, 0});
  }));
  CHECK(fault.what == "rank 1: F0 of stage 0 belongs on rank 0");
}

TEST_CASE("a microbatch of the other direction is refused", "[check]") {
  auto sch = spoiled([](int rank, std::vector<action>& p) {
    if (rank == 0)
      p.front().microbatch = 1;
  });
  sch.where = placement::bidirectional();
  CHECK(fault_of(sch).what
        == "rank 0: F1 of stage 0 is of a microbatch of the other direction");
  sch = spoiled([](int rank, std::vector<action>& p) {
    if (rank == 0)
      p.front().direction = 1;
  });
  CHECK(fault_of(sch).what == "rank 0: F0 of stage 0 (replica 1) is not in this run");
}

TEST_CASE("a deadlock of ranks with several stages names them", "[check]") {
  auto sch = spoiled([](int rank, std::vector<action>& p) {
    if (rank > 0)
      return p.clear();
    p = generate(examples::looped(gpipe(), 2), {2, 1}, 0);
    std::swap(p[0], p[1]);
  });
  sch.where = placement::looped(2);
  const auto fault = check(sch, {2, 1});
  REQUIRE(fault);
  CHECK(fault->what
        == "deadlock: rank 0 waits at F0 of stage 1 for F0 of stage 0 of rank 0; "
           "rank 0 is in the cycle");
}

TEST_CASE("gradients that no update covers are shown on the rank of their stage",
          "[check]") {
  const auto with_stages = examples::looped(gpipe(), 2);
  auto sch = with_stages;
  sch.order = batch_by_batch([with_stages](int rank, const shape& dims) {
    auto p = generate(with_stages, dims, rank);
    std::erase(p, action{op::update, 0, 3, 1});
    return p;
  });
  const auto fault = check(sch, {4, 2});
  REQUIRE(fault);
  CHECK_THAT(fault->what, ContainsSubstring("stage 3 has gradients of 2 microbatches"));
  CHECK_THAT(fault->picture, ContainsSubstring("> rank 1 "));
}

TEST_CASE("a rank that would hold more than it may is refused", "[check]") {
  auto sch = gpipe();
  sch.most_held = 2;
  CHECK_FALSE(check(sch, {2, 2, 3}).has_value());
  const auto fault = check(sch, {2, 3});
  REQUIRE(fault.has_value());
  CHECK(fault->what
        == "rank 0: F2 of stage 0 would be the 3. microbatch of a stage that the rank "
           "holds, and it may hold 2");
  CHECK(fault->mend == "run a backward before it");
  auto interleaved_on_few = interleaved(2);
  interleaved_on_few.most_held = 11;
  CHECK_FALSE(check(interleaved_on_few, {8, 8}).has_value());
  interleaved_on_few.most_held = 10;
  CHECK(check(interleaved_on_few, {8, 8}).has_value());
}

TEST_CASE("a pair waits for the inputs of both", "[check]") {
  const auto in_pairs = [](bool crossed) {
    return spoiled([crossed](int rank, std::vector<action>& p) {
      if (rank == 0) { // F0, then F1 with B0
        p[1].pair = in_pair::first;
        p[2].pair = in_pair::second;
      } else if (crossed) { // F0 B0 F1 B1: B0 is not made before F1 is there
        std::swap(p[1], p[2]);
      }
    });
  };
  CHECK_FALSE(check(in_pairs(false), {2, 2}).has_value());
  const auto fault = fault_of(in_pairs(true));
  CHECK_THAT(fault.what,
             ContainsSubstring("deadlock: rank 0 waits at F1 for B0 of rank 1"));
  CHECK_THAT(to_string(fault), ContainsSubstring("It might help to run F1 of rank 0"));
}
