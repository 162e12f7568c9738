// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/placement.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace troupe {

std::string stage_name(hosted_stage where) {
  auto result = "stage " + std::to_string(where.stage);
  if (where.direction > 0)
    result += " (replica " + std::to_string(where.direction) + ")";
  return result;
}

namespace {

/// Makes a placement of one direction. \param rank_at the rank of a stage, by the
/// quotient and the remainder of stage / ranks, and the number of ranks
placement one_way(std::string_view name, int stages_a_rank,
                  int (*rank_at)(int step, int position, int ranks)) {
  return {
    .name = name,
    .stages_a_rank = stages_a_rank,
    .ranks = [=](const shape& dims) { return dims.stages / stages_a_rank; },
    .host =
      [=](const shape& dims, hosted_stage hosted) {
        const int ranks = dims.stages / stages_a_rank;
        return rank_at(hosted.stage / ranks, hosted.stage % ranks, ranks);
      },
    .hosted =
      [=](const shape& dims, int rank) {
        const int ranks = dims.stages / stages_a_rank;
        // The mapping is its own inverse, so `rank_at` also finds the stages of a rank.
        std::vector<hosted_stage> result;
        for (int step = 0; step < stages_a_rank; ++step)
          result.push_back({0, step * ranks + rank_at(step, rank, ranks)});
        return result;
      },
  };
}

/// The first rank of the pair of pipelines to which a direction belongs.
int first_rank(const shape& dims, int direction, int pairs) {
  return direction / 2 * (dims.stages / pairs);
}

} // namespace

placement placement::linear() {
  return one_way("linear", 1, [](int, int position, int) { return position; });
}

placement placement::looped(int stages_a_rank) {
  return one_way("looped", stages_a_rank,
                 [](int, int position, int) { return position; });
}

placement placement::waves(int waves) {
  return one_way("waves", 2 * waves, [](int step, int position, int across) {
    return step % 2 == 0 ? position : across - 1 - position;
  });
}

// The second direction of a pair runs through the ranks in reverse.
placement placement::bidirectional(int pairs) {
  return {
    .name = "bidirectional",
    .directions = 2 * pairs,
    .ranks = [](const shape& dims) { return dims.stages; },
    .host =
      [=](const shape& dims, hosted_stage hosted) {
        const int position =
          hosted.direction % 2 == 0 ? hosted.stage : dims.stages - 1 - hosted.stage;
        return (first_rank(dims, hosted.direction, pairs) + position) % dims.stages;
      },
    .hosted =
      [=](const shape& dims, int rank) {
        std::vector<hosted_stage> result;
        for (int d = 0; d < 2 * pairs; ++d) {
          const int position =
            (rank - first_rank(dims, d, pairs) + dims.stages) % dims.stages;
          result.push_back({d, d % 2 == 0 ? position : dims.stages - 1 - position});
        }
        std::ranges::sort(result, {}, [](const hosted_stage& h) {
          return std::pair{h.stage, h.direction};
        });
        return result;
      },
  };
}

int stages_on(const placement& where, int ranks) {
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(std::int64_t{ranks} * where.stages_a_rank, most));
}

int ranks_of(const placement& where, const shape& dims) {
  return where.ranks(dims);
}

int directions_of(const placement& where) {
  return where.directions;
}

int rank_of(const placement& where, const shape& dims, hosted_stage hosted) {
  return where.host(dims, hosted);
}

std::vector<hosted_stage> hosted_by(const placement& where, const shape& dims,
                                    int rank) {
  return where.hosted(dims, rank);
}

// Each rank must list stages in increasing order, each on the rank that `host` names,
// and the count must be right. So no stage is missing, and none comes twice.
std::string validation_error(const placement& where, const shape& dims) {
  const auto error = [&](const std::string& text) {
    return "the placement " + std::string{where.name} + " " + text;
  };
  const int ranks = ranks_of(where, dims);
  if (ranks < 1 || where.directions < 1 || where.stages_a_rank < 1)
    return error("has no ranks");
  std::int64_t count = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto hosted = hosted_by(where, dims, rank);
    const auto on_rank = " on rank " + std::to_string(rank);
    if (hosted.empty())
      return error("has no stage" + on_rank);
    for (std::size_t i = 0; i < hosted.size(); ++i) {
      const auto& [direction, stage] = hosted[i];
      if (direction < 0 || direction >= where.directions || stage < 0
          || stage >= dims.stages)
        return error("has " + stage_name(hosted[i]) + on_rank
                     + ", which the run does not have");
      if (i > 0
          && std::pair{hosted[i - 1].stage, hosted[i - 1].direction}
               >= std::pair{stage, direction})
        return error("does not have stages in increasing order" + on_rank);
      if (const int host = rank_of(where, dims, hosted[i]); host != rank)
        return error("has " + stage_name(hosted[i]) + on_rank + " and on rank "
                     + std::to_string(host));
    }
    count += static_cast<std::int64_t>(hosted.size());
  }
  const auto expected = std::int64_t{where.directions} * dims.stages;
  return count == expected ? ""
                           : error("has " + std::to_string(count) + " of "
                                   + std::to_string(expected) + " stages");
}

int microbatch_of(const placement& where, const shape& dims, int direction, int k) {
  const int share = dims.microbatches / where.directions;
  return k / share * dims.microbatches + direction * share + k % share;
}

int direction_of(const placement& where, const shape& dims, int microbatch) {
  const int share = dims.microbatches / where.directions;
  return microbatch % dims.microbatches / share;
}

} // namespace troupe
