// The published numbers of reference/schedules.md, from programs laid out in time
// without actors. tests/actors holds the actors to the same timelines.

#include "schedules/bounds.hpp"
#include "schedules/catalog/catalog.hpp"
#include "schedules/prediction.hpp"
#include "schedules/program.hpp"
#include "schedules/timeline.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>

using namespace troupe;

namespace {

struct outcome {
  std::int64_t makespan = 0;
  std::vector<std::int64_t> idle; // a rank
};

outcome simulated(const schedule& sch, const shape& dims, int f, int b) {
  const auto ran = predict(
    sch, dims,
    [&](const action& a) {
      return a.what == op::update ? 0 : a.what == op::forward ? f : b;
    },
    [](const action&) { return 0; });
  outcome result;
  for (const auto& row : ran)
    result.makespan = std::max(result.makespan, row.back().end);
  for (const auto& row : ran) {
    result.idle.push_back(result.makespan);
    for (const auto& cell : row)
      result.idle.back() -= cell.end - cell.start;
  }
  return result;
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
      now += (a.what == op::forward) - (a.what == op::backward);
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
