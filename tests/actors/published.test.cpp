// SPDX-License-Identifier: BSD-3-Clause
// The published formulas: compared with the papers' numbers, and the catalog compared
// with the formulas.

#include "actors/proof/published.hpp"

#include "actors/proof/record_validation.hpp"
#include "schedules/bounds.hpp"
#include "schedules/program.hpp"
#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <numeric>

namespace troupe::published_test {

using published::rule;

namespace {

/// A number for each stage, or each rank.
template <class Formula>
std::vector<int> of_stages(const Formula& formula, const rule& by, const shape& dims) {
  std::vector<int> result;
  for (int s = 0; s < dims.stages; ++s)
    result.push_back(formula(by, dims, s));
  return result;
}

/// The activations that each rank holds.
std::vector<int> held(const rule& by, const shape& dims) {
  std::vector<int> result;
  for (int rank = 0; rank < published::ranks(by, dims); ++rank)
    result.push_back(*published::activations_held(by, dims, rank));
  return result;
}

/// B takes as long as I and W together.
std::optional<published::batch_time> time_of(const rule& by, const shape& dims,
                                             std::int64_t f, std::int64_t i,
                                             std::int64_t w) {
  return published::time_of_batch(by, dims, {f, i + w, i, w});
}

/// B takes twice as long as each half.
std::optional<published::batch_time> time_of(const rule& by, const shape& dims,
                                             std::int64_t f, std::int64_t b) {
  return published::time_of_batch(by, dims, {f, b, b / 2, b / 2});
}

/// Versions that microbatches 0, 1, ... read.
std::vector<int> reads(const rule& by, const shape& dims, int stage) {
  std::vector<int> result;
  for (int n = 0; n < dims.total(); ++n)
    result.push_back(*published::version_read(by, dims, stage, n));
  return result;
}

std::vector<std::pair<schedule, rule>> catalog_with_rules() {
  return {{naive(), {.name = "naive"}},
          {gpipe(), {.name = "gpipe"}},
          {one_f_one_b(), {.name = "1f1b"}},
          {chimera(), {.name = "chimera"}},
          {chimera({.forward_doubling = true}),
           {.name = "chimera", .forward_doubling = true}},
          {two_bw(), {.name = "2bw"}},
          {pipedream(), {.name = "pipedream"}},
          {pipedream(1, true), {.name = "pipedream", .vertical_sync = true}},
          {pipedream(3), {.name = "pipedream", .update_every = 3}},
          {pipedream(2, true),
           {.name = "pipedream", .update_every = 2, .vertical_sync = true}},
          {interleaved(2), {.name = "interleaved", .stages_a_rank = 2}},
          {interleaved(3), {.name = "interleaved", .stages_a_rank = 3}},
          {looped_bfs(2), {.name = "looped_bfs", .stages_a_rank = 2}},
          {zb_h1(), {.name = "zb-h1"}},
          {zb_h2(), {.name = "zb-h2"}},
          {zb_v(), {.name = "zb-v", .stages_a_rank = 2}},
          {zb_auto(), {.name = "zb-auto"}},
          {v_half(), {.name = "v-half", .stages_a_rank = 2}},
          {v_min(), {.name = "v-min", .stages_a_rank = 2}},
          {hanayo(2), {.name = "hanayo", .stages_a_rank = 4}},
          {dualpipe(), {.name = "dualpipe"}},
          {dualpipev(), {.name = "dualpipev", .stages_a_rank = 2}}};
}

} // namespace

TEST_CASE("published versions and staleness are the papers'", "[published]") {
  const rule stash{.name = "pipedream"};
  const rule sync{.name = "pipedream", .vertical_sync = true};
  const rule two{.name = "2bw"};
  const shape four{4, 8, 4};
  using published::max_staleness;
  using published::versions_kept;
  CHECK(of_stages(versions_kept, stash, four) == std::vector{4, 3, 2, 1});
  CHECK(of_stages(max_staleness, stash, four) == std::vector{3, 2, 1, 0});
  CHECK(of_stages(versions_kept, stash, {8, 8, 4})
        == std::vector{8, 7, 6, 5, 4, 3, 2, 1});
  CHECK(of_stages(versions_kept, sync, four) == std::vector{4, 4, 4, 4});
  CHECK(of_stages(max_staleness, sync, four) == std::vector{3, 3, 3, 3});
  CHECK(of_stages(versions_kept, two, four) == std::vector{2, 2, 2, 2});
  CHECK(of_stages(max_staleness, two, four) == std::vector{1, 1, 1, 1});
  // Accumulated: 1 + ceil((S-1-s) / K).
  CHECK(of_stages(versions_kept, {.name = "pipedream", .update_every = 2}, four)
        == std::vector{3, 2, 2, 1});
  CHECK(of_stages(versions_kept, {.name = "pipedream", .update_every = 3}, four)
        == std::vector{2, 2, 2, 1});
  CHECK(of_stages(max_staleness,
                  {.name = "ampnet", .max_active_keys = 5, .min_update_frequency = 2},
                  four)
        == std::vector{2, 2, 2, 2});
}

TEST_CASE("published microbatches read the papers' versions", "[published]") {
  const shape dims{3, 3, 3};
  CHECK(reads({.name = "pipedream"}, dims, 0)
        == std::vector{0, 0, 0, 1, 2, 3, 4, 5, 6});
  CHECK(reads({.name = "pipedream"}, dims, 2)
        == std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(reads({.name = "pipedream", .vertical_sync = true}, dims, 2)
        == std::vector{0, 0, 0, 1, 2, 3, 4, 5, 6});
  CHECK(reads({.name = "pipedream", .update_every = 2}, dims, 1)
        == std::vector{0, 0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(reads({.name = "2bw"}, dims, 2) == std::vector{0, 0, 0, 0, 0, 0, 1, 1, 1});
  for (const char* flush : {"naive", "gpipe", "1f1b"})
    CHECK(reads({.name = flush}, dims, 1) == std::vector{0, 0, 0, 1, 1, 1, 2, 2, 2});
  CHECK_FALSE(published::version_read({.name = "ampnet"}, dims, 0, 5));
}

TEST_CASE("published activations are the papers'", "[published]") {
  CHECK(held({.name = "gpipe"}, {4, 8}) == std::vector{8, 8, 8, 8});
  CHECK(held({.name = "1f1b"}, {4, 8}) == std::vector{4, 3, 2, 1});
  CHECK(held({.name = "1f1b"}, {4, 2, 9}) == std::vector{2, 2, 2, 1});
  CHECK(held({.name = "2bw"}, {4, 2, 9}) == std::vector{4, 3, 2, 1});
  CHECK(held({.name = "chimera"}, {4, 4}) == std::vector{3, 4, 4, 3});
  CHECK(held({.name = "chimera"}, {8, 16}) == std::vector{5, 6, 7, 8, 8, 7, 6, 5});
  const rule doubled{.name = "chimera", .forward_doubling = true};
  CHECK(held(doubled, {4, 8}) == std::vector{7, 8, 8, 7});
  CHECK(held(doubled, {8, 32}) == std::vector{13, 14, 15, 16, 16, 15, 14, 13});
  CHECK(held(doubled, {4, 4}) == std::vector{4, 4, 4, 4});
  CHECK(held(doubled, {8, 8}) == std::vector{7, 8, 8, 8, 8, 8, 8, 7});
  // Interleaved: Narayanan et al. 2021; zb: Qi et al. 2024; dualpipe: DeepSeek 2024.
  const auto looped = [](int v) {
    return rule{.name = "interleaved", .stages_a_rank = v};
  };
  CHECK(held(looped(2), {8, 8}) == std::vector{11, 9, 7, 5});
  CHECK(held(looped(3), {12, 8}) == std::vector{15, 13, 11, 9});
  CHECK(held(looped(4), {16, 8}) == std::vector{19, 17, 15, 13});
  CHECK(held(looped(2), {8, 4}) == std::vector{8, 8, 7, 5});
  CHECK(held({.name = "zb-h1"}, {4, 8}) == std::vector{4, 4, 4, 4});
  CHECK(held({.name = "zb-h2"}, {4, 8}) == std::vector{7, 7, 7, 7});
  CHECK(held({.name = "zb-v", .stages_a_rank = 2}, {8, 8}) == std::vector{8, 8, 8, 8});
  CHECK(held({.name = "dualpipe"}, {4, 10}) == std::vector{5, 5, 5, 5});
  CHECK(held({.name = "dualpipe"}, {8, 20}) == std::vector(8, 9));
  CHECK(held({.name = "dualpipev", .stages_a_rank = 2}, {8, 10}) == std::vector(4, 9));
}

TEST_CASE("published times are the papers'", "[published]") {
  using published::batch_time;
  CHECK(time_of({.name = "gpipe"}, {4, 8}, 1, 2) == batch_time{33, 9});
  CHECK(time_of({.name = "1f1b"}, {8, 16}, 1, 2) == batch_time{69, 21});
  CHECK(time_of({.name = "naive"}, {4, 1}, 1, 2) == batch_time{12, 9});
  const rule both{.name = "chimera"};
  CHECK(time_of(both, {4, 4}, 1, 1) == batch_time{10, 2});
  CHECK(time_of(both, {4, 8}, 1, 1) == batch_time{18, 2});
  CHECK(time_of(both, {8, 8}, 1, 1) == batch_time{22, 6});
  CHECK(time_of(both, {4, 4}, 1, 2) == batch_time{16, 4});
  CHECK(time_of(both, {8, 8}, 1, 2) == batch_time{36, 12});
  CHECK(time_of(both, {8, 16}, 1, 2) == batch_time{66, 18});
  CHECK(time_of(both, {16, 16}, 1, 2) == batch_time{76, 28});
  CHECK_FALSE(time_of(both, {4, 6}, 1, 2));
  const rule doubled{.name = "chimera", .forward_doubling = true};
  CHECK(time_of(doubled, {4, 8}, 1, 2) == batch_time{27, 3});
  CHECK(time_of(doubled, {8, 32}, 1, 2) == batch_time{105, 9});
  CHECK_FALSE(time_of(doubled, {4, 12}, 1, 2));
  CHECK_FALSE(time_of({.name = "pipedream"}, {4, 8}, 1, 2));
  // The same papers; a stage takes a v-th where a rank has v stages.
  const auto looped = [](int v) {
    return rule{.name = "interleaved", .stages_a_rank = v};
  };
  CHECK(time_of(looped(2), {8, 8}, 1, 2) == batch_time{57, 9});  // times 2
  CHECK(time_of(looped(3), {12, 8}, 1, 2) == batch_time{81, 9}); // times 3
  CHECK(time_of(looped(4), {16, 8}, 1, 2) == batch_time{105, 9});
  CHECK(time_of(looped(2), {16, 16}, 1, 2) == batch_time{117, 21});
  CHECK(time_of({.name = "looped_bfs", .stages_a_rank = 2}, {8, 8}, 1, 2)
        == batch_time{57, 9});
  CHECK(time_of({.name = "zb-h1"}, {4, 8}, 1, 1, 1) == batch_time{27, 3});
  CHECK(time_of({.name = "zb-h1"}, {8, 16}, 1, 1, 1) == batch_time{55, 7});
  CHECK(time_of({.name = "zb-h1"}, {4, 8}, 4, 5, 3) == batch_time{114, 18}); // times 4
  CHECK(time_of({.name = "zb-h2"}, {4, 8}, 1, 1, 1) == batch_time{27, 3, true});
  CHECK(time_of({.name = "zb-h2"}, {8, 16}, 1, 1, 1) == batch_time{55, 7, true});
  CHECK(time_of({.name = "zb-v", .stages_a_rank = 2}, {8, 8}, 1, 1, 1)
        == batch_time{51, 3, true}); // times 2
  const rule pipes{.name = "dualpipe"};
  CHECK(time_of(pipes, {4, 10}, 1, 1, 1) == batch_time{32, 2});
  CHECK(time_of(pipes, {8, 20}, 1, 1, 1) == batch_time{66, 6});
  CHECK(time_of(pipes, {8, 32}, 1, 1, 1) == batch_time{102, 6});
  CHECK(time_of(pipes, {16, 40}, 1, 1, 1) == batch_time{134, 14});
  CHECK(time_of({.name = "dualpipev", .stages_a_rank = 2}, {8, 10}, 1, 1, 1)
        == batch_time{66, 6}); // times 2
  const auto waves = [](int w) {
    return rule{.name = "hanayo", .stages_a_rank = 2 * w};
  };
  CHECK(time_of(waves(1), {8, 8}, 1, 1) == batch_time{38, 6});  // times 2
  CHECK(time_of(waves(2), {16, 8}, 1, 1) == batch_time{70, 6}); // times 4
  CHECK_FALSE(time_of(waves(1), {8, 6}, 1, 1));
  CHECK_FALSE(time_of(waves(1), {8, 8}, 1, 2));
  CHECK_FALSE(time_of(looped(2), {8, 6}, 1, 2));
  CHECK_FALSE(time_of({.name = "zb-h2"}, {4, 8}, 4, 5, 3));
  CHECK(published::times({33, 9}, 3) == batch_time{99, 27});
  CHECK(published::times({27, 3, true}, 3) == batch_time{75, 3, true});
  CHECK(published::times({27, 3, true}, 3, true) == batch_time{81, 9, true});
}

TEST_CASE("the catalog reads the published versions and runs in the published order",
          "[published]") {
  for (const auto& [sch, by] : catalog_with_rules())
    for (const int stages : {1, 2, 3, 4, 6, 8})
      for (const int microbatches : {1, 2, 4, 5, 8, 12, 20}) {
        const shape dims{stages * by.stages_a_rank, microbatches, 3};
        if (!validation_error(sch, dims).empty())
          continue;
        REQUIRE(ranks_of(sch.where, dims) == published::ranks(by, dims));
        INFO(sch.name << " " << stages << "x" << microbatches);
        for (int s = 0; s < dims.stages; ++s)
          for (int n = 0; n < dims.total(); ++n)
            CHECK(version_read(sch, dims, s, n)
                  == published::version_read(by, dims, s, n));
        for (int rank = 0; rank < stages; ++rank) {
          std::int64_t last = -1;
          int held = 0, most = 0;
          for (const auto& a : generate(sch, dims, rank)) {
            held += (a.op == op::forward) - adds_gradient(a.op);
            most = std::max(most, held);
            CHECK(published::host(by, dims, a.stage, a.direction) == rank);
            if (a.op == op::update)
              continue;
            const auto slot = published::slot(by, dims, a.op, a.stage, a.microbatch);
            CHECK(slot.value_or(last + 1) > last);
            last = slot.value_or(last);
          }
          CHECK(published::activations_held(by, dims, rank).value_or(most) == most);
          const auto bounds = bounds_of(sch, dims, rank);
          const auto hosted = hosted_by(sch.where, dims, rank);
          for (std::size_t i = 0; i < bounds.size(); ++i) {
            const int kept = published::versions_kept(by, dims, hosted[i].stage);
            CHECK((published::is_steady(by, dims) ? bounds[i].versions == kept
                                                  : bounds[i].versions <= kept));
          }
        }
      }
}

TEST_CASE("a rule is found by what a user typed", "[published]") {
  CHECK(published::find("pipedream", {}) == rule{.name = "pipedream"});
  CHECK(published::find("pipedream",
                        {{"update_every", "3"}, {"vertical_sync", "on"}, {"lr", "1"}})
        == rule{.name = "pipedream", .update_every = 3, .vertical_sync = true});
  CHECK(published::find("pipedream", {{"vertical_sync", "off"}})
        == rule{.name = "pipedream"});
  CHECK(
    published::find("ampnet", {{"max_active_keys", "7"}, {"min_update_frequency", "2"}})
    == rule{.name = "ampnet", .max_active_keys = 7, .min_update_frequency = 2});
  CHECK_FALSE(published::find("mine", {}));
  for (const auto& [sch, by] : catalog_with_rules())
    CHECK(rule_of(sch)->forward_doubling == by.forward_doubling);
  // The catalog's schedule gives the same values as the formula, including no value.
  for (const auto& entry : catalog()) {
    const std::string name{entry.name};
    if (!published::find(name, {})) // no paper's
      continue;
    const auto made = *rule_of(*find_schedule(name)), said = *published::find(name, {});
    CHECK(made.vertical_sync == said.vertical_sync);
    CHECK(made.max_active_keys == said.max_active_keys);
    CHECK(made.stages_a_rank == said.stages_a_rank);
    CHECK(
      (published::flushes(said) || name == "2bw"
       || published::minibatch(made, {2, 4}) == published::minibatch(said, {2, 4})));
  }
}

} // namespace troupe::published_test
