#include "schedules/placement.hpp"

#include <cstdint>
#include <utility>

namespace troupe {

std::string stage_name(hosted_stage where) {
  auto result = "stage " + std::to_string(where.stage);
  if (where.direction > 0)
    result += " (replica " + std::to_string(where.direction) + ")";
  return result;
}

namespace {

int one_a_stage(const shape& dims) {
  return dims.stages;
}

/// Direction 1 goes through the ranks from the last to the first.
int head_to_tail(const shape& dims, hosted_stage what) {
  return what.direction == 0 ? what.stage : dims.stages - 1 - what.stage;
}

std::vector<hosted_stage> both_directions(const shape& dims, int rank) {
  const hosted_stage there{0, rank}, back{1, dims.stages - 1 - rank};
  return there.stage <= back.stage ? std::vector{there, back}
                                   : std::vector{back, there};
}

} // namespace

placement placement::linear() {
  return {
    .name = "linear",
    .ranks = one_a_stage,
    .host = [](const shape&, hosted_stage what) { return what.stage; },
    .hosted =
      [](const shape&, int rank) {
        return std::vector<hosted_stage>{{0, rank}};
      },
  };
}

placement placement::bidirectional() {
  return {
    .name = "bidirectional",
    .directions = 2,
    .ranks = one_a_stage,
    .host = head_to_tail,
    .hosted = both_directions,
  };
}

int ranks_of(const placement& where, const shape& dims) {
  return where.ranks(dims);
}

int directions_of(const placement& where) {
  return where.directions;
}

int rank_of(const placement& where, const shape& dims, hosted_stage what) {
  return where.host(dims, what);
}

std::vector<hosted_stage> hosted_by(const placement& where, const shape& dims,
                                    int rank) {
  return where.hosted(dims, rank);
}

// As many stages as there are, in increasing order, each on the rank that `host` names:
// then none is missing, and none comes twice.
std::string contradiction(const placement& where, const shape& dims) {
  const auto wrong = [&](const std::string& what) {
    return "the placement " + std::string{where.name} + " " + what;
  };
  const int ranks = ranks_of(where, dims);
  if (ranks < 1 || where.directions < 1)
    return wrong("has no ranks");
  std::int64_t count = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto hosted = hosted_by(where, dims, rank);
    const auto on_rank = " on rank " + std::to_string(rank);
    if (hosted.empty())
      return wrong("has no stage" + on_rank);
    for (std::size_t i = 0; i < hosted.size(); ++i) {
      const auto& [direction, stage] = hosted[i];
      if (direction < 0 || direction >= where.directions || stage < 0
          || stage >= dims.stages)
        return wrong("has " + stage_name(hosted[i]) + on_rank + ", which there is not");
      if (i > 0
          && std::pair{hosted[i - 1].stage, hosted[i - 1].direction}
               >= std::pair{stage, direction})
        return wrong("does not have stages in increasing order" + on_rank);
      if (const int host = rank_of(where, dims, hosted[i]); host != rank)
        return wrong("has " + stage_name(hosted[i]) + on_rank + " and on rank "
                     + std::to_string(host));
    }
    count += static_cast<std::int64_t>(hosted.size());
  }
  const auto all = std::int64_t{where.directions} * dims.stages;
  return count == all ? ""
                      : wrong("has " + std::to_string(count) + " of "
                              + std::to_string(all) + " stages");
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
