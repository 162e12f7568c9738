#include "actors/plan.hpp"

namespace troupe {

nanoseconds link_cost::of(double message_bytes) const {
  if (bytes_per_second <= 0)
    return latency;
  return latency
         + static_cast<nanoseconds>(message_bytes / bytes_per_second * 1e9 + 0.5);
}

std::string run_plan::name_of(position p) const {
  return stage_name({replica_at(p), p.stage});
}

std::string run_plan::optimizer_of(position p) const {
  const auto name = "optimizer of stage " + std::to_string(p.stage);
  return p.data > 0 ? name + " (data replica " + std::to_string(p.data) + ")" : name;
}

int run_plan::rank_of(position p) const {
  return p.data * dims.stages + troupe::rank_of(sch.where, dims, p.hosted());
}

std::vector<position> run_plan::hosted_by(int rank) const {
  std::vector<position> result;
  for (const auto& h : troupe::hosted_by(sch.where, dims, rank % dims.stages))
    result.push_back({rank / dims.stages, h.replica, h.stage});
  return result;
}

batching run_plan::batches() const {
  const int microbatches = data * dims.microbatches;
  return {work ? work->batch : microbatches, microbatches};
}

int run_plan::microbatch_of_all(int of_data, int microbatch) const {
  const int share = dims.microbatches;
  return (microbatch / share * data + of_data) * share + microbatch % share;
}

} // namespace troupe
