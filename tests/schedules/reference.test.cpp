// SPDX-License-Identifier: BSD-3-Clause
// The published numbers of reference/schedules.md, from programs laid out in time
// without actors. Tests in tests/actors compare actors with the same timelines.

#include "schedules/catalog/catalog.hpp"
#include "schedules/timeline.hpp"
#include "tests/dice.hpp"
#include "tests/schedules/laid_out.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>

namespace troupe::reference_test {

using namespace troupe::laid_out;

TEST_CASE("flush schedules of one direction take the published time", "[reference]") {
  const int p = GENERATE(1, 2, 3, 4, 8), m = GENERATE(1, 2, 5, 8, 16);
  const int f = GENERATE(1, 2), b = GENERATE(1, 2, 3), steps = GENERATE(1, 3);
  const shape dims{p, m, steps};
  for (const auto& sch : {gpipe(), one_f_one_b()}) {
    const auto run = simulated(sch, dims, f, b);
    CHECK(run.makespan == steps * (m + p - 1) * (f + b));
    for (const auto idle : run.idle)
      CHECK(idle == steps * (p - 1) * (f + b));
  }
  const auto slow = simulated(naive(), dims, f, b);
  CHECK(slow.makespan == steps * m * p * (f + b));
  for (const auto idle : slow.idle)
    CHECK(idle == steps * m * (p - 1) * (f + b));
}

TEST_CASE("activations held are the published ones", "[reference]") {
  const int p = GENERATE(1, 2, 3, 4, 8), m = GENERATE(1, 2, 5, 8, 16);
  for (int s = 0; s < p; ++s) {
    const auto i = static_cast<std::size_t>(s);
    CHECK(peak_activations(naive(), {p, m})[i] == 1);
    CHECK(peak_activations(gpipe(), {p, m})[i] == m);
    CHECK(peak_activations(one_f_one_b(), {p, m})[i] == std::min(m, p - s));
    CHECK(peak_activations(pipedream(), {p, m})[i] == std::min(m, p - s));
  }
}

TEST_CASE("the vectors of reference/schedules.md", "[reference]") {
  CHECK(simulated(gpipe(), {4, 8}, 1, 2).makespan == 33);
  CHECK(simulated(one_f_one_b(), {8, 16}, 1, 2).makespan == 69);
  CHECK(peak_activations(one_f_one_b(), {4, 8}) == std::vector{4, 3, 2, 1});
  CHECK(peak_activations(gpipe(), {4, 8}) == std::vector{8, 8, 8, 8});
}

// Section 4 of reference/schedules.md. A stage takes a v-th of a rank's F, so times
// there are in v-ths.
TEST_CASE("interleaved 1F1B takes the published time and memory", "[reference]") {
  const auto holds = [](int p, int m, int v, int makespan, int idle,
                        const std::vector<int>& peaks) {
    const auto sch = interleaved(v);
    const auto run = on_ranks(sch, p, m);
    CHECK(run.makespan == makespan);
    CHECK(run.idle == all(p, idle));
    CHECK(peak_activations(sch, {p * v, m}) == peaks);
  };
  holds(4, 8, 1, 33, 9, {7, 5, 3, 1}); // the warm-up is longer than 1F1B's
  holds(4, 8, 2, 57, 9, {11, 9, 7, 5});
  holds(4, 8, 3, 81, 9, {15, 13, 11, 9});
  holds(4, 8, 4, 105, 9, {19, 17, 15, 13});
  holds(8, 16, 2, 117, 21, {23, 21, 19, 17, 15, 13, 11, 9});
  CHECK(peak_activations(interleaved(2), {8, 4}) == std::vector{8, 8, 7, 5});
}

TEST_CASE("breadth-first takes the time of interleaved 1F1B and holds all",
          "[reference]") {
  const int p = GENERATE(2, 4, 8), rounds = GENERATE(1, 2), v = GENERATE(1, 2, 3);
  const int m = p * rounds;
  const auto run = on_ranks(looped_bfs(v), p, m);
  CHECK(run.idle == on_ranks(interleaved(v), p, m).idle);
  CHECK(run.idle == all(p, 3 * (p - 1)));
  CHECK(peak_activations(looped_bfs(v), {p * v, m})
        == std::vector(static_cast<std::size_t>(p), v * m));
}

TEST_CASE("hanayo takes the published time, and holds what is in flight",
          "[reference]") {
  const int p = GENERATE(1, 2, 4, 5), rounds = GENERATE(1, 2, 3),
            waves = GENERATE(1, 2);
  const int m = p * rounds, v = 2 * waves;
  // At F = B = 1 of a stage, so v of a rank.
  const auto run = simulated(hanayo(waves), {p * v, m}, 1, 1);
  CHECK(run.idle == all(p, 2 * (p - 1)));
  CHECK(run.makespan == 2 * v * m + 2 * (p - 1));
  std::vector<int> held; // by rank; the last one is where each wave turns
  for (int rank = 0; rank < p; ++rank)
    held.push_back(v * p - (p - 1 - rank));
  CHECK(peak_activations(hanayo(waves), {p * v, m}) == held);
}

TEST_CASE("zero-bubble schedules take the published time and memory", "[reference]") {
  const auto holds = [](const schedule& sch, int p, int m, int makespan,
                        std::vector<std::int64_t> span_idle, int peak) {
    const auto run = on_ranks(sch, p, m);
    CHECK(run.makespan == makespan);
    CHECK(run.span_idle == span_idle);
    CHECK(peak_activations(sch, {stages_on(sch.where, p), m})
          == std::vector(static_cast<std::size_t>(p), peak));
  };
  holds(zb_h1(), 4, 8, 27, {3, 2, 1, 0}, 4);
  holds(zb_h1(), 8, 16, 55, {7, 6, 5, 4, 3, 2, 1, 0}, 8);
  holds(zb_h2(), 4, 8, 27, all(4, 0), 7);
  holds(zb_h2(), 8, 16, 55, all(8, 0), 15);
  holds(zb_v(), 4, 8, 51, all(4, 0), 8); // of half a rank's share
  // F = 1, I = 1.25, W = 0.75, in quarters, and of half a share in eighths.
  const costs unequal{4, 8, 5, 3};
  CHECK(simulated(zb_h1(), {4, 8}, unequal).idle == all(4, 18));
  using idle = std::vector<std::int64_t>;
  CHECK(simulated(zb_h2(), {4, 8}, unequal).span_idle == idle{9, 6, 3, 0});
  CHECK(simulated(zb_v(), {8, 8}, unequal).span_idle == idle{12, 9, 6, 3});
}

TEST_CASE("zero-bubble idle times are their formulas", "[reference]") {
  const int p = GENERATE(1, 2, 3, 5, 8), m = 2 * p + GENERATE(0, 1, 6);
  const int f = GENERATE(2, 3), i = GENERATE(2, 3), w = GENERATE(1, 2);
  const costs of{f, i + w, i, w};
  if (f == i) // else the warm-up has other gaps
    CHECK(simulated(zb_h1(), {p, m}, of).idle == all(p, (p - 1) * (f + i - w)));
  CHECK(on_ranks(zb_h2(), p, m).makespan == 3 * m + p - 1);
  CHECK(on_ranks(zb_v(), p, m).makespan == 2 * 3 * m + p - 1);
}

// Qi et al. (2024) compare the search with hand-made schedules. At a memory limit of P
// microbatches the search is no worse than ZB-H1; at twice that limit, no worse than
// ZB-H2.
TEST_CASE("zb-auto is as fast as zero-bubble schedules made by hand, in no more memory",
          "[reference]") {
  const int p = GENERATE(2, 4, 8), m = GENERATE(8, 16, 24);
  const costs of = GENERATE(costs{1, 2, 1, 1}, costs{4, 8, 5, 3}, costs{3, 7, 4, 3},
                            costs{10, 21, 12, 9});
  CAPTURE(p, m, of.f, of.i, of.w);
  const std::vector<split_costs> own{{of.f, of.i, of.w}};
  for (const auto& [byhand, held] : {std::pair{zb_h1(), p}, {zb_h2(), 2 * p - 1}}) {
    const auto found = zb_auto(own, held);
    CHECK(simulated(found, {p, m}, of).makespan
          <= simulated(byhand, {p, m}, of).makespan);
    CHECK(std::ranges::max(peak_activations(found, {p, m})) <= held);
  }
  CHECK(std::ranges::max(peak_activations(zb_auto(own), {p, m})) <= p);
}

TEST_CASE("zb-auto goes by what each stage takes", "[reference]") {
  const shape dims{4, 8};
  std::int64_t by_own = 0, by_equal = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    dice d{seed};
    std::vector<split_costs> uneven;
    for (int s = 0; s < dims.stages; ++s)
      uneven.push_back({d.number(4, 8), d.number(4, 8), d.number(4, 8)});
    const auto makespan = [&](const schedule& sch) {
      const auto ran = predict(
        sch, dims,
        [&](const action& a) {
          const auto& c = uneven[static_cast<std::size_t>(a.stage)];
          return a.op == op::forward           ? c.f
                 : a.op == op::input_gradient  ? c.i
                 : a.op == op::weight_gradient ? c.w
                                               : 0;
        },
        [](const action&) { return 0; });
      std::int64_t most = 0;
      for (const auto& row : ran)
        most = std::max(most, row.back().end);
      return most;
    };
    by_own += makespan(zb_auto(uneven));
    by_equal += makespan(zb_auto());
  }
  CHECK(100 * by_own < 99 * by_equal);
  CHECK_FALSE(validation_error(zb_auto({{1, 1, 1}, {1, 1, 1}}), dims).empty());
}

// Bounds of sail-sg's page on "Pipeline Parallelism with Controllable Memory", in
// microbatches of both stages of a rank. The bubbles on that page are of long runs.
TEST_CASE("v-half and v-min hold what is published", "[reference]") {
  const int p = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16), m = 4 * p;
  const auto most = [&](const schedule& sch) {
    return std::ranges::max(peak_activations(sch, {2 * p, m}));
  };
  CHECK(most(v_half()) == 2 * ((p + 2) / 2));
  CHECK(most(v_min()) == 2 * ((p + 4) / 3));
  const auto idle = [&](const schedule& sch) { return on_ranks(sch, p, m).idle[0]; };
  const auto of_1f1b = 2 * on_ranks(one_f_one_b(), p, m).idle[0];
  CHECK(idle(v_half()) <= of_1f1b / 2 + p);
  CHECK(idle(v_min()) <= of_1f1b * 2 / 3 + 4);
}

TEST_CASE("weight versions are the published ones", "[reference]") {
  const shape dims{4, 16, 3};
  const auto versions = &stage_bounds::versions;
  for (const auto& sch : {naive(), gpipe(), one_f_one_b(), ampnet()})
    CHECK(peaks(sch, dims, versions) == std::vector{1, 1, 1, 1});
  CHECK(peaks(chimera(), dims, versions)
        == std::vector{2, 2, 2, 2}); // two stages a rank
  CHECK(peaks(pipedream(), dims, versions) == std::vector{4, 3, 2, 1});
  CHECK(peaks(pipedream(), {8, 16, 2}, versions)
        == std::vector{8, 7, 6, 5, 4, 3, 2, 1});
  CHECK(peaks(pipedream(1, true), dims, versions) == std::vector{4, 4, 4, 4});
  CHECK(peaks(two_bw(), dims, versions) == std::vector{2, 2, 2, 2});
  CHECK(peaks(two_bw(), {4, 4, 3}, versions) == std::vector{2, 2, 2, 2});
}

TEST_CASE("pipedream that accumulates keeps 1 + ceil((S-1-s)/K) versions",
          "[reference]") {
  const int stages = GENERATE(1, 2, 4, 8), every = GENERATE(1, 2, 3, 5);
  const auto found = peaks(pipedream(every), {stages, 64}, &stage_bounds::versions);
  for (int s = 0; s < stages; ++s)
    CHECK(found[static_cast<std::size_t>(s)]
          == 1 + (stages - 1 - s + every - 1) / every);
}

TEST_CASE("a picture shows what ran when", "[timeline]") {
  timeline ran{{{{op::forward, 0, 0, 0}, 0, 5},
                {{op::forward, 0, 0, 1}, 5, 10},
                {{op::backward, 0, 0, 0}, 25, 35},
                {{op::backward, 0, 0, 1}, 35, 45}},
               {{{op::forward, 0, 1, 0}, 5, 10},
                {{op::forward, 0, 1, 1}, 10, 15},
                {{op::backward, 0, 1, 0}, 15, 25},
                {{op::backward, 0, 1, 1}, 25, 35}}};
  CHECK(draw(ran, 80)
        == "rank 0  F0 F1 .  .  .  B0 =  B1 =\n"
           "rank 1  .  F0 F1 B0 =  B1 =  .  .\n");
}

} // namespace troupe::reference_test
