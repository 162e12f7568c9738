// The published numbers of reference/schedules.md, from programs laid out in time
// without actors. tests/actors holds the actors to the same timelines.

#include "schedules/bounds.hpp"
#include "schedules/catalog/catalog.hpp"
#include "schedules/prediction.hpp"
#include "schedules/program.hpp"
#include "schedules/timeline.hpp"
#include "tests/dice.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>

using namespace troupe;

namespace {

struct outcome {
  std::int64_t makespan = 0;
  std::vector<std::int64_t> idle;      // a rank
  std::vector<std::int64_t> span_idle; // between its first action and its last
};

/// What actions of a stage cost, in any unit.
struct costs {
  int f, b, i, w;

  int of(op what) const {
    switch (what) {
    case op::forward:
      return f;
    case op::backward:
      return b;
    case op::input_gradient:
      return i;
    case op::weight_gradient:
      return w;
    default:
      return 0;
    }
  }
};

outcome simulated(const schedule& sch, const shape& dims, const costs& of) {
  const auto ran = predict(
    sch, dims, [&](const action& a) { return of.of(a.what); },
    [](const action&) { return 0; });
  outcome result;
  for (const auto& row : ran)
    result.makespan = std::max(result.makespan, row.back().end);
  for (const auto& row : ran) {
    result.idle.push_back(result.makespan);
    for (const auto& cell : row)
      result.idle.back() -= cell.end - cell.start;
    result.span_idle.push_back(result.idle.back() - row.front().start
                               - (result.makespan - row.back().end));
  }
  return result;
}

outcome simulated(const schedule& sch, const shape& dims, int f, int b) {
  return simulated(sch, dims, {f, b, 0, 0});
}

/// On so many ranks, at F = I = W = 1 of a rank's share: of a stage, if a rank has
/// several, in parts of that.
outcome on_ranks(const schedule& sch, int ranks, int microbatches) {
  return simulated(sch, {stages_on(sch.where, ranks), microbatches}, {1, 2, 1, 1});
}

std::vector<std::int64_t> all(int ranks, std::int64_t value) {
  return std::vector(static_cast<std::size_t>(ranks), value);
}

std::vector<int> peaks(const schedule& sch, const shape& dims,
                       int stage_bounds::*what) {
  std::vector<int> result;
  for (int rank = 0; rank < ranks_of(sch.where, dims); ++rank) {
    int sum = 0;
    for (const auto& bound : bounds_of(sch, dims, rank))
      sum += bound.*what;
    result.push_back(sum);
  }
  return result;
}

/// Microbatches that `rank` holds at once, all its stages together.
std::vector<int> peak_activations(const schedule& sch, const shape& dims) {
  std::vector<int> result;
  for (int rank = 0; rank < ranks_of(sch.where, dims); ++rank) {
    int now = 0, most = 0;
    for (const auto& a : generate(sch, dims, rank)) {
      now += (a.what == op::forward)
             - (a.what == op::backward || a.what == op::weight_gradient);
      most = std::max(most, now);
    }
    result.push_back(most);
  }
  return result;
}

} // namespace

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

TEST_CASE("chimera takes the published time and memory", "[reference]") {
  const auto holds = [](shape dims, int f, int b, int makespan, int idle) {
    const auto run = simulated(chimera(), dims, f, b);
    CHECK(run.makespan == makespan);
    for (const auto rank_idle : run.idle)
      CHECK(rank_idle == idle);
  };
  holds({4, 4}, 1, 1, 10, 2);
  holds({4, 8}, 1, 1, 18, 2);
  holds({8, 8}, 1, 1, 22, 6);
  holds({4, 4}, 1, 2, 16, 4);
  holds({8, 8}, 1, 2, 36, 12);
  holds({8, 16}, 1, 2, 66, 18);
  holds({16, 16}, 1, 2, 76, 28);
  CHECK(peak_activations(chimera(), {4, 4}) == std::vector{3, 4, 4, 3});
  CHECK(peak_activations(chimera(), {8, 8}) == std::vector{5, 6, 7, 8, 8, 7, 6, 5});
}

TEST_CASE("chimera holds no more than D microbatches a rank, however many there are",
          "[reference]") {
  const int d = GENERATE(2, 4, 6, 8, 16), n = GENERATE(2, 4, 6, 10, 16, 32, 64);
  for (const int peak : peak_activations(chimera(), {d, n}))
    CHECK(peak <= d);
}

// Section 3.5 of the paper: units of 2D microbatches close up, so that idle time does
// not grow with them; without forward doubling it does. In slots as long as a backward
// D-2 would stay free; of two forwards in one the first starts its neighbour earlier.
TEST_CASE("chimera's doubled forwards leave as much idle time, however many units",
          "[reference]") {
  const int d = GENERATE(2, 4, 6, 8, 16), units = GENERATE(1, 2, 5);
  const shape dims{d, 2 * d * units};
  for (const int b : {1, 2}) {
    const auto run = simulated(chimera(true, 1, true), dims, 1, b);
    CHECK(run.makespan == dims.microbatches * (1 + b) + (d / 2 - 1) * (1 + b));
    CHECK(run.idle == all(d, (d / 2 - 1) * (1 + b)));
  }
  CHECK(simulated(chimera(), dims, 1, 2).idle.front() == (2 * units + 1) * (d - 2));
  std::vector<int> held;
  for (int rank = 0; rank < d; ++rank)
    held.push_back(3 * d / 2 + 1 + std::min(rank, d - 1 - rank));
  CHECK(peak_activations(chimera(true, 1, true), dims) == held);
}

// Section 4 of reference/schedules.md. A stage takes a v-th of a rank's F, so times are
// in v-ths there.
TEST_CASE("interleaved 1F1B takes the published time and memory", "[reference]") {
  const auto holds = [](int p, int m, int v, int makespan, int idle,
                        const std::vector<int>& peaks) {
    const auto sch = interleaved(v);
    const auto run = on_ranks(sch, p, m);
    CHECK(run.makespan == makespan);
    CHECK(run.idle == all(p, idle));
    CHECK(peak_activations(sch, {p * v, m}) == peaks);
  };
  holds(4, 8, 1, 33, 9, {7, 5, 3, 1}); // it warms up for longer than 1F1B
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

// Qi et al. (2024) compare their search with the schedules made by hand: at a memory
// limit of P microbatches it is no worse than ZB-H1, at twice that than ZB-H2.
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
          return a.what == op::forward           ? c.f
                 : a.what == op::input_gradient  ? c.i
                 : a.what == op::weight_gradient ? c.w
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
  CHECK_FALSE(refusal(zb_auto({{1, 1, 1}, {1, 1, 1}}), dims).empty());
}

// Bounds of sail-sg's page on "Pipeline Parallelism with Controllable Memory", in
// microbatches of both stages of a rank; the bubbles there are of long runs.
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

TEST_CASE("chimera of several pairs takes the published time and memory",
          "[reference]") {
  const auto holds = [](int pairs, shape dims, int b, int makespan, int idle) {
    const auto run = simulated(chimera(true, pairs), dims, 1, b);
    CHECK(run.makespan == makespan);
    CHECK(run.idle == all(dims.stages, idle));
  };
  holds(2, {8, 8}, 1, 18, 2);
  holds(4, {8, 8}, 1, 16, 0);
  holds(2, {8, 16}, 1, 34, 2);
  holds(2, {8, 8}, 2, 28, 4);
  CHECK(peak_activations(chimera(true, 2), {8, 8})
        == std::vector{7, 8, 8, 7, 7, 8, 8, 7});
  CHECK(peak_activations(chimera(true, 4), {8, 8}) == std::vector(std::size_t{8}, 8));
}

TEST_CASE("dualpipe takes the published time and memory", "[reference]") {
  const auto holds = [](int p, int m, int makespan, int idle) {
    const auto run = on_ranks(dualpipe(), p, m);
    CHECK(run.makespan == makespan);
    CHECK(run.idle == all(p, idle));
    CHECK(peak_activations(dualpipe(), {p, m})
          == std::vector(static_cast<std::size_t>(p), p + 1));
  };
  holds(4, 10, 32, 2);
  holds(8, 20, 66, 6);
  holds(8, 32, 102, 6);
  holds(16, 40, 134, 14);
  // DualPipeV on p ranks: (PP/2-1)(F&B + B - 3W), PP = 2p, of halves of a rank's share.
  const int p = GENERATE(1, 2, 4, 8), m = 2 * p + GENERATE(0, 1, 5);
  CHECK(on_ranks(dualpipev(), p, m).idle == all(p, (p - 1) * (3 + 2 - 3)));
  CHECK(peak_activations(dualpipev(), {2 * p, m})
        == std::vector(static_cast<std::size_t>(p), 2 * p + 1));
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
