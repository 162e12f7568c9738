// SPDX-License-Identifier: BSD-3-Clause
// The pieces of an update, in pictures: one line for each piece, for every way to share
// updates out.

#include "actors/updates/update_pieces.hpp"

#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <utility>
#include <vector>

namespace troupe::update_pieces_test {

namespace {

constexpr position first_stage{0, 0, 0}, middle{0, 0, 1};

/// A training on three stages, by a mesh and a schedule.
run_plan plan_of(const tiny::mesh_of_ranks& mesh, const schedule& sch = one_f_one_b()) {
  const int stages = directions_of(sch.where) == 1 ? 3 : 4;
  return tiny::training_on(mesh, sch, {stages, 4, 2}, clock_kind::virtual_time);
}

run_plan tied(run_plan plan) {
  model_options model{"gpt", 4, 8, 2, 4, 12};
  model.tied = true;
  plan.work->whole = *make_network<float>(model);
  return plan;
}

std::string picture(const run_plan& plan, position where = first_stage) {
  return to_string(update_pieces(steps_of(plan, where), where.direction, {}));
}

} // namespace

TEST_CASE("one data replica applies its gradients when they are all there",
          "[update_pieces]") {
  CHECK(picture(plan_of({})) == "piece; needs directions 0\n");
  CHECK(picture(tiny::simulation(one_f_one_b(), {3, 4}))
        == "piece; needs directions 0\n");
  CHECK(picture(plan_of({.data = 2, .exchange = "hogwild"}))
        == "piece; needs directions 0\n");
}

TEST_CASE("data replicas sum before an update, and gather what each made behind it",
          "[update_pieces]") {
  CHECK(picture(plan_of({.data = 2})) == "piece; needs directions 0, sums 0\n");
  CHECK(picture(plan_of({.data = 2, .exchange = "zero1"}))
        == "piece; needs directions 0, sums 0; ends in gathers 0\n"
           "piece; needs gathers 0\n");
  CHECK(picture(plan_of({.data = 2, .exchange = "server"})) // each serves a share
        == picture(plan_of({.data = 2, .exchange = "zero1"})));
  CHECK(picture(plan_of({.data = 2, .exchange = "zero2"})) // sums with each backward
        == "piece; needs directions 0; ends in gathers 0\n"
           "piece; needs gathers 0\n");
  CHECK(picture(plan_of({.data = 2, .exchange = "zero3"}))
        == "piece; needs directions 0\n");
}

TEST_CASE("the norm of others is found between the sum and the update",
          "[update_pieces]") {
  CHECK(picture(plan_of({.clips = true}))
        == "piece; needs directions 0; ends in norm 0\n"
           "piece; needs norm 0\n");
  CHECK(picture(plan_of({.data = 2, .exchange = "zero1", .clips = true}))
        == "piece; needs directions 0, sums 0; ends in norm 0\n"
           "piece; needs norm 0; ends in gathers 0\n"
           "piece; needs gathers 0\n");
}

TEST_CASE("a stage that clips by its own norm asks others only for their shares of it",
          "[update_pieces]") {
  const auto by_stage = [](tiny::mesh_of_ranks mesh) {
    mesh.clips = true;
    auto plan = plan_of(mesh);
    plan.work->optimizer.scope = clip_scope::stage;
    return plan;
  };
  CHECK(picture(by_stage({})) == "piece; needs directions 0\n");
  CHECK(picture(by_stage({.data = 2})) == "piece; needs directions 0, sums 0\n");
  CHECK(picture(by_stage({.data = 2, .exchange = "zero3"}))
        == "piece; needs directions 0; ends in norm 0\n"
           "piece; needs norm 0\n");
  CHECK(picture(by_stage({.tensor = 2}))
        == "piece; needs directions 0; ends in norm 0\n"
           "piece; needs norm 0\n");
}

TEST_CASE("parameter servers are pushed to, after the norm if there is one",
          "[update_pieces]") {
  CHECK(picture(plan_of({.data = 2, .exchange = "server:async"}))
        == "piece; needs directions 0; ends in servers 0\n"
           "piece; needs servers 0\n");
  CHECK(picture(plan_of({.data = 2, .exchange = "server:async", .clips = true}))
        == "piece; needs directions 0; ends in norm 0\n"
           "piece; needs norm 0; ends in servers 0\n"
           "piece; needs servers 0\n");
}

TEST_CASE("the second direction of Chimera copies the version that the first made",
          "[update_pieces]") {
  const auto plan = plan_of({}, chimera());
  CHECK(picture(plan) == "piece; needs directions 0\n");
  CHECK(picture(plan, {0, 1, 0}) == "piece; needs directions 1\n");
  CHECK(picture(plan_of({.data = 2, .exchange = "zero1"}, chimera()), {0, 1, 0})
        == "piece; needs directions 1\n");
}

TEST_CASE("both ends of a tied matrix meet between the sum and the norm",
          "[update_pieces]") {
  CHECK(picture(tied(plan_of({})))
        == "piece; needs directions 0; ends in tie 0\n"
           "piece; needs tie 0\n");
  CHECK(picture(tied(plan_of({})), middle) == "piece; needs directions 0\n");
  CHECK(picture(tied(plan_of({})), {0, 0, 2})
        == "piece; needs directions 0; ends in tie 0\n"
           "piece; needs tie 0\n");
  CHECK(picture(tied(plan_of({.data = 2, .exchange = "zero1", .clips = true})))
        == "piece; needs directions 0, sums 0; ends in tie 0\n"
           "piece; needs tie 0; ends in norm 0\n"
           "piece; needs norm 0; ends in gathers 0\n"
           "piece; needs gathers 0\n");
}

namespace {

/// Runs all pieces of an update; returns what ran, in order.
std::string ran(const update_steps& steps, int direction = 0) {
  std::string result;
  const auto all = update_pieces(steps, direction,
                                 {.add = [&result] { result += "add "; },
                                  .copy_tied = [&result] { result += "give "; },
                                  .measure = [&result] { result += "measure "; },
                                  .apply = [&result] { result += "apply "; }});
  for (const auto& p : all.pieces)
    if (p.run)
      p.run();
  return result;
}

/// For each piece letters for its properties: c costs, y yields; then the meetings that
/// the piece ends in.
std::vector<std::pair<std::string, int>> facts(const update_steps& steps) {
  std::vector<std::pair<std::string, int>> result;
  for (const auto& p : update_pieces(steps, 0, {}).pieces)
    result.emplace_back(std::string{p.costs ? "c" : ""} + (p.yields ? "y" : ""), p.end);
  return result;
}

using all_facts = std::vector<std::pair<std::string, int>>;

} // namespace

TEST_CASE("an update adds, measures and applies, each once and in this order",
          "[update_pieces]") {
  CHECK(ran({}) == "apply ");
  CHECK(ran({.measures = true, .norm = true}) == "measure apply ");
  CHECK(ran({.has_user_exchange = true}) == "add apply ");
  CHECK(ran({.tied = true}) == "give apply ");
  CHECK(ran({.tied = true, .measures = true, .norm = true, .gathers = true})
        == "give measure apply ");
  // servers apply the update
  CHECK(ran({.measures = true, .servers = true}) == "measure ");
  CHECK(ran({.directions = 2}, 1) == "apply ");
}

TEST_CASE("an update costs once, and a rank of two directions may do others before it",
          "[update_pieces]") {
  CHECK(facts({}) == all_facts{{"c", nothing}});
  CHECK(facts({.tied = true, .measures = true, .norm = true, .gathers = true})
        == all_facts{
          {"", tie_given}, {"", norm_measured}, {"c", version_made}, {"", nothing}});
  CHECK(facts({.directions = 2}) == all_facts{{"cy", nothing}});
  CHECK(facts({.tied = true, .directions = 2})
        == all_facts{{"y", tie_given}, {"c", nothing}});
  // A shard sends its part of the norm at once.
  CHECK(facts({.measures = true, .norm = true, .directions = 2})
        == all_facts{{"", norm_measured}, {"c", nothing}});
}

} // namespace troupe::update_pieces_test
