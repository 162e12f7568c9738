// SPDX-License-Identifier: BSD-3-Clause
// Placements: those of the catalog, and a looped one in everything that placements
// decide.

#include "schedules/placement.hpp"

#include "schedules/bounds.hpp"
#include "schedules/check.hpp"
#include "schedules/prediction.hpp"
#include "schedules/program.hpp"
#include "schedules/time_layout.hpp"
#include "tests/schedules/examples.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <map>

namespace troupe::placement_test {

using Catch::Matchers::ContainsSubstring;
using examples::looped;

namespace {

using hosted = std::vector<hosted_stage>;

/// One row for each rank: "F0 of stage 2" is F0.2 here.
std::string text(const schedule& sch, const shape& dims) {
  std::string result;
  for (int rank = 0; rank < ranks_of(sch.where, dims); ++rank) {
    std::string row;
    for (const auto& a : generate(sch, dims, rank))
      row += (row.empty() ? "" : " ") + to_string(a) + "." + std::to_string(a.stage);
    result += row + '\n';
  }
  return result;
}

timeline predicted(const schedule& sch, const shape& dims, std::int64_t latency) {
  return predict(
    sch, dims,
    [](const action& a) {
      return a.op == op::update ? 0 : a.op == op::forward ? 1 : 2;
    },
    [=](const action&) { return latency; });
}

std::int64_t makespan(const timeline& ran) {
  std::int64_t end = 0;
  for (const auto& row : ran)
    end = std::max(end, row.back().end);
  return end;
}

/// The schedules of one direction that have programs.
std::vector<schedule> of_one_direction() {
  return {naive(),     gpipe(),      one_f_one_b(),     two_bw(),
          pipedream(), pipedream(3), pipedream(2, true)};
}

} // namespace

TEST_CASE("linear and bidirectional placements are the ones in the picture",
          "[placement]") {
  const shape dims{4, 4};
  const auto line = placement::linear(), both = placement::bidirectional();
  CHECK(ranks_of(line, dims) == 4);
  CHECK(ranks_of(both, dims) == 4);
  CHECK(directions_of(line) == 1);
  CHECK(directions_of(both) == 2);
  CHECK(hosted_by(line, dims, 2) == hosted{{0, 2}});
  CHECK(hosted_by(both, dims, 0) == hosted{{0, 0}, {1, 3}});
  CHECK(hosted_by(both, dims, 3) == hosted{{1, 0}, {0, 3}});
  CHECK(rank_of(both, dims, {0, 1}) == 1);
  CHECK(rank_of(both, dims, {1, 1}) == 2);
}

TEST_CASE("a looped placement has fewer ranks than stages", "[placement]") {
  CHECK(ranks_of(placement::looped(2), {8, 4}) == 4);
  CHECK(hosted_by(placement::looped(2), {8, 4}, 1) == hosted{{0, 1}, {0, 5}});
  CHECK(hosted_by(placement::looped(4), {8, 4}, 1)
        == hosted{{0, 1}, {0, 3}, {0, 5}, {0, 7}});
  CHECK(rank_of(placement::looped(2), {8, 4}, {0, 6}) == 2);
  CHECK(validation_error(looped(gpipe(), 2), {8, 4}).empty());
}

TEST_CASE("stages that go there and back are the ones in the picture", "[placement]") {
  const auto v = placement::waves(1), w = placement::waves(2);
  CHECK(stages_on(v, 4) == 8);
  CHECK(ranks_of(v, {8, 4}) == 4);
  CHECK(hosted_by(v, {8, 4}, 0) == hosted{{0, 0}, {0, 7}});
  CHECK(hosted_by(v, {8, 4}, 3) == hosted{{0, 3}, {0, 4}});
  CHECK(rank_of(v, {8, 4}, {0, 5}) == 2);
  CHECK(hosted_by(w, {8, 4}, 0) == hosted{{0, 0}, {0, 3}, {0, 4}, {0, 7}});
  CHECK(rank_of(w, {8, 4}, {0, 6}) == 1);
}

// Li & Hoefler 2021, figure 8: pair i of f begins at worker i * D / f.
TEST_CASE("pairs of pipelines begin along the ranks", "[placement]") {
  const auto two = placement::bidirectional(2);
  CHECK(directions_of(two) == 4);
  CHECK(hosted_by(two, {4, 4}, 0) == hosted{{0, 0}, {3, 1}, {2, 2}, {1, 3}});
  CHECK(hosted_by(two, {4, 4}, 2) == hosted{{2, 0}, {1, 1}, {0, 2}, {3, 3}});
  CHECK(rank_of(two, {4, 4}, {2, 3}) == 1);
  CHECK(rank_of(two, {4, 4}, {3, 0}) == 1);
}

TEST_CASE("no placement contradicts itself", "[placement]") {
  const int many = GENERATE(1, 2, 3), ranks = GENERATE(1, 2, 3, 4, 8);
  for (const auto& where : {placement::looped(many), placement::waves(many)})
    CHECK(validation_error(where, {stages_on(where, ranks), 4}).empty());
  const shape around{2 * many * ranks, 4};
  CHECK(validation_error(placement::bidirectional(many), around).empty());
}

TEST_CASE("a placement that contradicts itself is refused with where", "[placement]") {
  const auto refused = [](auto spoil) {
    auto sch = looped(gpipe(), 2), local = looped(ampnet(), 2);
    spoil(sch.where);
    spoil(local.where);
    const auto fault = check(sch, {4, 2}), of_rule = check(local, {4, 2});
    REQUIRE((fault && of_rule));
    CHECK(fault->text == of_rule->text);
    return fault->text;
  };
  CHECK_THAT(refused([](placement& p) { p.ranks = [](const shape&) { return 0; }; }),
             ContainsSubstring("has no ranks"));
  CHECK_THAT(refused([](placement& p) { p.ranks = [](const shape&) { return 1; }; }),
             ContainsSubstring("has 2 of 4 stages"));
  CHECK_THAT(refused([](placement& p) {
               p.hosted = [](const shape&, int rank) {
                 return rank == 0 ? hosted{{0, 0}, {0, 2}} : hosted{};
               };
             }),
             ContainsSubstring("has no stage on rank 1"));
  CHECK_THAT(refused([](placement& p) {
               p.hosted = [](const shape&, int rank) {
                 return rank == 0 ? hosted{{0, 0}, {0, 4}} : hosted{{0, 1}, {0, 3}};
               };
             }),
             ContainsSubstring("has stage 4 on rank 0, which the run does not have"));
  CHECK_THAT(refused([](placement& p) {
               p.hosted = [](const shape&, int rank) {
                 return rank == 0 ? hosted{{0, 2}, {0, 0}} : hosted{{0, 1}, {0, 3}};
               };
             }),
             ContainsSubstring("increasing order on rank 0"));
  CHECK_THAT(refused([](placement& p) {
               p.host = [](const shape&, hosted_stage what) { return what.stage / 2; };
             }),
             ContainsSubstring("has stage 2 on rank 0 and on rank 1"));
}

TEST_CASE("directions and microbatches that do not go together are refused",
          "[placement]") {
  auto sch = gpipe();
  sch.where = placement::bidirectional();
  CHECK_THAT(validation_error(sch, {3, 5}),
             ContainsSubstring("that is a multiple of 2"));
  CHECK(validation_error(sch, {3, 4}).empty());
  auto local = ampnet();
  local.where = placement::bidirectional();
  CHECK_THAT(validation_error(local, {4, 4}),
             ContainsSubstring("needs a placement with one direction"));
}

TEST_CASE("a rank of several stages runs them merged by slot", "[placement]") {
  CHECK(text(looped(gpipe(), 2), {4, 2})
        == "F0.0 F1.0 F0.2 F1.2 B0.2 B1.2 B0.0 B1.0 U1.0 U1.2\n"
           "F0.1 F1.1 F0.3 F1.3 B0.3 B1.3 B0.1 B1.1 U1.1 U1.3\n");
  CHECK(text(looped(one_f_one_b(), 2), {4, 3})
        == "F0.0 F1.0 F0.2 F2.0 F1.2 B0.2 F2.2 B0.0 B1.2 B1.0 B2.2 B2.0 U2.0 U2.2\n"
           "F0.1 F1.1 F0.3 B0.3 F2.1 F1.3 B0.1 B1.3 F2.3 B1.1 B2.3 B2.1 U2.1 U2.3\n");
}

TEST_CASE("looped stages are checked, and hold what they hold one a rank",
          "[placement]") {
  const int rounds = GENERATE(1, 2, 3), ranks = GENERATE(1, 2, 4);
  for (const auto& sch : of_one_direction())
    for (const int microbatches : {1, 3, 8})
      for (const int steps : {1, 4}) {
        const shape dims{rounds * ranks, microbatches, steps};
        if (!validation_error(sch, dims).empty())
          continue;
        const auto on_few = looped(sch, rounds);
        INFO(sch.name << " " << rounds << "x" << ranks << "x" << microbatches << "x"
                      << steps);
        REQUIRE(validation_error(on_few, dims).empty());
        const auto fault = check(on_few, dims);
        INFO((fault ? to_string(*fault) : ""));
        CHECK_FALSE(fault.has_value());
        for (int rank = 0; rank < ranks; ++rank) {
          const auto bounds = bounds_of(on_few, dims, rank);
          REQUIRE(bounds.size() == static_cast<std::size_t>(rounds));
          for (int round = 0; round < rounds; ++round)
            CHECK(bounds[static_cast<std::size_t>(round)]
                  == bounds_of(sch, dims, rank + round * ranks).front());
        }
      }
}

// Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters
// Using Megatron-LM", 2021, section 2.2. With v stages a rank, ranks idle for
// (p-1)(f+b) of a stage, as long as before. A microbatch takes v times as long.
TEST_CASE("looped stages take the published time", "[placement]") {
  const int rounds = GENERATE(1, 2, 3, 5), ranks = GENERATE(1, 2, 4, 8);
  const shape dims{rounds * ranks, ranks, 2};
  const auto ran = predicted(looped(gpipe(), rounds), dims, 0);
  CHECK(ran.size() == static_cast<std::size_t>(ranks));
  CHECK(makespan(ran) == 2 * (rounds * ranks + ranks - 1) * (1 + 2));
}

TEST_CASE("what passes within a rank takes no time", "[placement]") {
  const int latency = 1000;
  CHECK(makespan(predicted(looped(naive(), 4), {4, 3}, latency)) == 3 * 4 * 3);
  // Of six messages there and back, ranks 0, 0, 1, 1 pass two.
  auto in_pairs = naive();
  in_pairs.where = {
    .name = "in pairs",
    .ranks = [](const shape& dims) { return dims.stages / 2; },
    .host = [](const shape&, hosted_stage what) { return what.stage / 2; },
    .hosted =
      [](const shape&, int rank) {
        return hosted{{0, 2 * rank}, {0, 2 * rank + 1}};
      },
  };
  CHECK(makespan(predicted(in_pairs, {4, 1}, latency)) == 4 * 3 + 2 * latency);
  CHECK(makespan(predicted(naive(), {4, 1}, latency)) == 4 * 3 + 6 * latency);
}

TEST_CASE("looped stages laid out in time are where the prediction has them",
          "[placement]") {
  const auto sch = GENERATE(gpipe(), one_f_one_b(), pipedream(2));
  const shape dims{6, 4, 2};
  const auto on_few = looped(sch, 3);
  const auto expected = predicted(on_few, dims, 0);
  timeline placed(expected.size());
  std::vector<std::vector<action>> programs;
  std::vector<std::size_t> told(expected.size());
  for (int rank = 0; rank < ranks_of(on_few.where, dims); ++rank)
    programs.push_back(generate(on_few, dims, rank));
  time_layout layout{
    placed.size(), [&](std::size_t rank, std::int64_t start, std::int64_t end) {
      placed[rank].push_back({programs[rank][told[rank]++], start, end});
    }};
  for (std::size_t rank = programs.size(); rank-- > 0;)
    for (const auto& a : programs[rank]) {
      const auto input = [&](int stage) { return dependency{0, stage, a.microbatch}; };
      const auto gradient = [&](int stage) {
        return dependency{1, stage, a.microbatch};
      };
      time_layout::part p{a.op == op::update ? 0 : a.op == op::forward ? 1 : 2, {}, {}};
      if (a.op == op::forward && a.stage > 0)
        p.inputs = {input(a.stage)};
      if (a.op == op::forward && a.stage < dims.stages - 1)
        p.outputs = {input(a.stage + 1)};
      if (a.op == op::backward && a.stage < dims.stages - 1)
        p.inputs = {gradient(a.stage)};
      if (a.op == op::backward && a.stage > 0)
        p.outputs = {gradient(a.stage - 1)};
      layout.add(rank, std::move(p));
    }
  CHECK_FALSE(layout.waiting());
  CHECK(layout.open() == 0);
  CHECK(draw(placed, 500) == draw(expected, 500));
}

TEST_CASE("ampnet's rule gives every stage of a rank its own updates", "[placement]") {
  const int keys = GENERATE(1, 3);
  const shape dims{4, 7, 2};
  const auto sch = looped(ampnet(keys, 4), 2);
  const auto ran = predicted(sch, dims, 0);
  REQUIRE(ran.size() == 2);
  std::map<int, std::vector<int>> updates; // after how many backwards, by stage
  std::map<int, int> backwards;
  int in_flight = 0;
  for (const auto& row : ran)
    for (const auto& [what, start, end] : row) {
      if (what.op == op::backward)
        ++backwards[what.stage];
      if (what.op == op::update)
        updates[what.stage].push_back(backwards[what.stage]);
      if (what.stage == 0 && what.op != op::update) {
        in_flight += what.op == op::forward ? 1 : -1;
        CHECK(in_flight <= keys);
      }
    }
  for (int stage = 0; stage < 4; ++stage)
    CHECK(updates[stage] == std::vector{4, 8, 12, 14});
  CHECK(bounds_of(sch, dims, 1)
        == std::vector<stage_bounds>{{keys, 0, 1}, {keys, 0, 1}});
}

} // namespace troupe::placement_test
