// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/check.hpp"

#include "schedules/bounds.hpp"
#include "schedules/catalog/catalog.hpp"
#include "schedules/program.hpp"
#include "tests/schedules/examples.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <random>

namespace troupe::check_test {

using Catch::Matchers::ContainsSubstring;

namespace {

/// 1F1B's programs for 2 stages and 2 microbatches, changed by `spoil`.
schedule spoiled(std::function<void(int rank, std::vector<action>&)> spoil) {
  return {
    .name = "spoiled",
    .order = batch_by_batch([spoil](int rank, const shape& dims) {
      auto result = generate(one_f_one_b(), {dims.stages, dims.microbatches}, rank);
      spoil(rank, result);
      return result;
    })};
}

program_error fault_of(const schedule& sch) {
  const auto fault = check(sch, {2, 2});
  REQUIRE(fault.has_value());
  return *fault;
}

} // namespace

TEST_CASE("a program without an action that another waits for is refused", "[check]") {
  const auto fault = fault_of(spoiled([](int rank, std::vector<action>& p) {
    if (rank == 0)
      std::erase(p, action{op::forward, 0, 0, 1});
  }));
  CHECK_THAT(fault.text,
             ContainsSubstring("F1 of stage 0, which no program contains")
               || ContainsSubstring("B1 of stage 0 comes before its forward"));
}

TEST_CASE("a missing gradient is named with the rank that waits for it", "[check]") {
  const auto fault = fault_of(spoiled([](int rank, std::vector<action>& p) {
    if (rank == 1)
      std::erase(p, action{op::backward, 0, 1, 1});
  }));
  CHECK_THAT(fault.text,
             ContainsSubstring("U1 of stage 1 covers 1 gradient instead of 2"));
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
  CHECK_THAT(fault.text,
             ContainsSubstring("deadlock: rank 0 waits at B0 for B0 of rank 1; "
                               "rank 1 waits at F1 for F1 of rank 0"));
  CHECK_THAT(fault.picture, ContainsSubstring("> rank 0  F0   [B0]\n"
                                              "  rank 1  .    F0   ?F1\n"));
  CHECK(fault.fix == "run F1 of rank 0, whose input has arrived, before B0");
}

TEST_CASE("counts must be right", "[check]") {
  CHECK_THAT(fault_of(spoiled([](int, std::vector<action>& p) {
               p.insert(p.begin(), p.front());
             }))
               .text,
             ContainsSubstring("F0 of stage 0 comes twice"));
  CHECK_THAT(fault_of(spoiled([](int rank, std::vector<action>& p) {
               if (rank == 1)
                 p.pop_back();
             }))
               .text,
             ContainsSubstring("gradients of 2 microbatches that no update covers"));
  CHECK_THAT(fault_of(spoiled([](int, std::vector<action>& p) { p.clear(); })).text,
             ContainsSubstring("stage 0 has no forward of microbatch 0"));
  CHECK_THAT(fault_of(spoiled([](int, std::vector<action>& p) {
               p.push_back({op::forward, 0, 0, 2});
             }))
               .text,
             ContainsSubstring("is outside the run"));
}

TEST_CASE("backwards in another order than their microbatches are refused", "[check]") {
  CHECK_THAT(
    fault_of(spoiled([](int, std::vector<action>& p) {
      std::erase_if(p, [](const action& a) { return a.op == op::backward; });
      for (const int m : {1, 0})
        p.insert(p.end() - 1, {op::backward, 0, p.front().stage, m});
    }))
      .text,
    ContainsSubstring("is summed after microbatch 1, but a stage sums gradients "
                      "in the order of their microbatches"));
}

TEST_CASE("a forward that reads a version not yet made is refused", "[check]") {
  auto sch = gpipe();
  sch.weights.reads = [](const shape&, int, int microbatch, int) { return microbatch; };
  CHECK_THAT(fault_of(sch).text,
             ContainsSubstring("F1 of stage 0 reads version 1, but this stage has made "
                               "only 0"));
}

TEST_CASE("an action on another rank than its stage's is refused", "[check]") {
  const auto fault = fault_of(spoiled([](int rank, std::vector<action>& p) {
    if (rank == 1)
      p.push_back({op::forward, 0, 0, 0});
  }));
  CHECK(fault.text == "rank 1: F0 of stage 0 belongs on rank 0");
}

TEST_CASE("a microbatch of the other direction is refused", "[check]") {
  auto sch = spoiled([](int rank, std::vector<action>& p) {
    if (rank == 0)
      p.front().microbatch = 1;
  });
  sch.where = placement::bidirectional();
  CHECK(fault_of(sch).text
        == "rank 0: F1 of stage 0 is of a microbatch of the other direction");
  sch = spoiled([](int rank, std::vector<action>& p) {
    if (rank == 0)
      p.front().direction = 1;
  });
  CHECK(fault_of(sch).text
        == "rank 0: F0 of stage 0 (replica 1) is outside the run (stages: 2, "
           "microbatches: 2, directions: 1)");
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
  CHECK(fault->text
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
  CHECK_THAT(fault->text, ContainsSubstring("stage 3 has gradients of 2 microbatches"));
  CHECK_THAT(fault->picture, ContainsSubstring("> rank 1 "));
}

TEST_CASE("a rank that would hold more than it may is refused", "[check]") {
  auto sch = gpipe();
  sch.most_held = 2;
  CHECK_FALSE(check(sch, {2, 2, 3}).has_value());
  const auto fault = check(sch, {2, 3});
  REQUIRE(fault.has_value());
  CHECK(fault->text
        == "rank 0: F2 of stage 0 would make the rank hold 3 microbatches of a stage, "
           "and the rank may hold 2");
  CHECK(fault->fix == "run a backward before F2 of stage 0");
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
  CHECK_THAT(fault.text,
             ContainsSubstring("deadlock: rank 0 waits at F1 for B0 of rank 1"));
  CHECK_THAT(to_string(fault), ContainsSubstring("It might help to run F1 of rank 0"));
}

TEST_CASE("what is no pair is refused", "[check]") {
  const auto told = [](in_pair one, in_pair other, std::size_t at = 1) {
    return fault_of(spoiled([=](int rank, std::vector<action>& p) {
             if (rank == 0) { // F0 F1 B0 B1 U1
               p[at].pair = one;
               p[at + 1].pair = other;
             }
           }))
      .text;
  };
  CHECK(told(in_pair::first, in_pair::no)
        == "rank 0: F1 of stage 0 is the first of a pair that has no second");
  CHECK(told(in_pair::no, in_pair::second)
        == "rank 0: B0 of stage 0 is the second of a pair that has no first");
  CHECK_THAT(told(in_pair::first, in_pair::second, 0),
             ContainsSubstring("are no pair"));
  CHECK_THAT(told(in_pair::first, in_pair::second, 3),
             ContainsSubstring("are no pair"));
  CHECK_THAT(fault_of(spoiled([](int rank, std::vector<action>& p) {
               if (rank == 0) {
                 p[1].pair = in_pair::first;
                 p[2].pair = in_pair::second;
                 p[2].stage = 70'000'000;
               }
             }))
               .text,
             ContainsSubstring("B0 of stage 70000000 is outside the run"));
  const auto with_itself = fault_of(spoiled([](int rank, std::vector<action>& p) {
    if (rank == 1) { // F0 B0
      p[0].pair = in_pair::first;
      p[1].pair = in_pair::second;
    }
  }));
  CHECK_THAT(with_itself.text, ContainsSubstring("F0 of stage 1 and B0 of stage 1 "
                                                 "cannot run as a pair"));
  CHECK(with_itself.fix == "run the two actions one after the other");
}

TEST_CASE("an update names the last microbatch that it covers", "[check]") {
  const auto named = [](int microbatch) {
    return spoiled(
      [microbatch](int, std::vector<action>& p) { p.back().microbatch = microbatch; });
  };
  CHECK_FALSE(check(named(1), {2, 2, 3}).has_value());
  const auto fault = fault_of(named(0));
  CHECK_THAT(fault.text, ContainsSubstring("covers gradients up to microbatch 1"));
  CHECK(fault.fix == "name the update U1");
}

TEST_CASE("without a flush forwards come in order, as versions go", "[check]") {
  // F4 comes before F3, and frees the version that F3 reads.
  const auto one = [](std::vector<int> forwards) {
    return schedule{.name = "mine",
                    .order = explicit_program{[forwards](int, const shape&) {
                      std::vector<action> all;
                      for (std::size_t i = 0; i < forwards.size(); ++i) {
                        all.push_back({op::forward, 0, 0, forwards[i]});
                        if (i % 2 == 0)
                          continue;
                        const int m = static_cast<int>(i);
                        all.push_back({op::backward, 0, 0, m - 1});
                        all.push_back({op::backward, 0, 0, m});
                        all.push_back({op::update, 0, 0, m});
                      }
                      return [all, at = std::size_t{0}]() mutable {
                        return at == all.size() ? std::optional<action>{} : all[at++];
                      };
                    }},
                    .weights = two_bw().weights,
                    .repeats = false,
                    .streams = true};
  };
  CHECK_FALSE(check(one({0, 1, 2, 3, 4, 5}), {1, 2, 3}).has_value());
  const auto fault = check(one({0, 1, 2, 3, 5, 4}), {1, 2, 3});
  REQUIRE(fault.has_value());
  CHECK_THAT(fault->text,
             ContainsSubstring("F4 of stage 0 comes after F5: samples enter stage 0"));
  auto second = one({0, 1, 2, 3, 5, 4}); // a stage before has the right order
  const auto last = std::get<explicit_program>(second.order);
  const auto first = std::get<explicit_program>(one({0, 1, 2, 3, 4, 5}).order);
  second.order = explicit_program{[=](int rank, const shape& dims) -> action_generator {
    return [rank, all = rank == 0 ? first(0, dims) : last(0, dims)]() {
      auto next = all();
      if (next)
        next->stage = rank;
      return next;
    };
  }};
  CHECK_THAT(check(second, {2, 2, 3}).value().text,
             ContainsSubstring("F4 of stage 1 comes after F5: without a flush"));
}

TEST_CASE("a gradient that an update lacks is named", "[check]") {
  const auto without = [](op what, int microbatch) {
    auto sch = zb_h1();
    sch.order = batch_by_batch([=](int, const shape& dims) {
      auto all = generate(zb_h1(), {1, dims.microbatches}, 0);
      std::erase(all, action{what, 0, 0, microbatch});
      return all;
    });
    const auto fault = check(sch, {1, 3});
    REQUIRE(fault.has_value());
    return *fault;
  };
  CHECK_THAT(without(op::weight_gradient, 1).text,
             ContainsSubstring("U2 of stage 0 covers 2 gradients instead of 3: W1 of "
                               "stage 0 does not come before the update"));
  const auto no_input = without(op::input_gradient, 1);
  CHECK_THAT(no_input.text,
             ContainsSubstring("W1 of stage 0 comes before its input gradient"));
  CHECK(no_input.fix == "move W1 of stage 0 after I1 of stage 0");
}

TEST_CASE("who waits for an input gradient is told so", "[check]") {
  auto sch = zb_h1();
  sch.order = batch_by_batch([](int rank, const shape& dims) {
    auto all = generate(zb_h1(), {2, dims.microbatches}, rank);
    if (rank == 0) // I0 before F1, which the other rank wants first
      std::swap(*std::ranges::find(all, action{op::forward, 0, 0, 1}),
                *std::ranges::find(all, action{op::input_gradient, 0, 0, 0}));
    else
      std::swap(*std::ranges::find(all, action{op::forward, 0, 1, 1}),
                *std::ranges::find(all, action{op::input_gradient, 0, 1, 0}));
    return all;
  });
  CHECK_THAT(check(sch, {2, 2}).value().text,
             ContainsSubstring("rank 0 waits at I0 for I0 of rank 1"));
}

TEST_CASE("what is no schedule at all is told, and not tried", "[check]") {
  auto sch = gpipe();
  sch.order = explicit_program{};
  CHECK_THAT(check(sch, {2, 2}).value().text,
             ContainsSubstring("a schedule needs a name"));
  sch.order = explicit_program{[](int, const shape&) { return action_generator{}; }};
  CHECK_THAT(check(sch, {2, 2}).value().text,
             ContainsSubstring("stage 0 has no forward of microbatch 0"));
  sch = gpipe();
  sch.most_held = -1;
  CHECK(check(sch, {2, 2}).has_value());
  sch = gpipe();
  sch.where.host = nullptr;
  CHECK_THAT(check(sch, {2, 2}).value().text, ContainsSubstring("functions ranks"));
}

TEST_CASE("a picture of many ranks shows those around the one, in columns", "[check]") {
  auto sch = one_f_one_b();
  sch.order = batch_by_batch([](int rank, const shape& dims) {
    auto all = generate(one_f_one_b(), {dims.stages, dims.microbatches}, rank);
    if (rank == 9)
      all.erase(all.begin());
    return all;
  });
  const auto picture = check(sch, {16, 1}).value().picture;
  CHECK(picture.starts_with("  ..\n  rank 5 "));
  CHECK_THAT(picture,
             ContainsSubstring("\n> rank 9   ") && ContainsSubstring("\n  rank 10  "));
  CHECK(picture.ends_with("\n  ..\n"));
}

} // namespace troupe::check_test
