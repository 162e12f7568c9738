#include "schedules/placement.hpp"

#include <algorithm>

namespace troupe {

std::string stage_name(hosted_stage where) {
  auto result = "stage " + std::to_string(where.stage);
  if (where.replica > 0)
    result += " (replica " + std::to_string(where.replica) + ")";
  return result;
}

int replicas_of(placement where) {
  return where == placement::bidirectional ? 2 : 1;
}

int rank_of(placement, const shape& dims, hosted_stage what) {
  return what.replica == 0 ? what.stage : dims.stages - 1 - what.stage;
}

std::vector<hosted_stage> hosted_by(placement where, const shape& dims, int rank) {
  std::vector<hosted_stage> result{{0, rank}};
  if (where == placement::bidirectional)
    result.push_back({1, dims.stages - 1 - rank});
  std::ranges::sort(result, {}, &hosted_stage::stage);
  return result;
}

int microbatch_of(placement where, const shape& dims, int replica, int k) {
  const int share = dims.microbatches / replicas_of(where);
  return k / share * dims.microbatches + replica * share + k % share;
}

int replica_of(placement where, const shape& dims, int microbatch) {
  const int share = dims.microbatches / replicas_of(where);
  return microbatch % dims.microbatches / share;
}

} // namespace troupe
