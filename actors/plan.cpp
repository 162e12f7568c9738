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

std::vector<position> run_plan::norm_group(position p) const {
  const bool all_stages = work->optimizer.scope == clip_scope::network;
  const int shares = share_of(p).count;
  std::vector<position> result;
  for (int s = all_stages ? 0 : p.stage; s < (all_stages ? dims.stages : p.stage + 1);
       ++s)
    for (int d = 0; d < shares; ++d)
      result.push_back({shares > 1 ? d : p.data, 0, s});
  return result;
}

layer_list<float> run_plan::layers_of(int stage) const {
  const auto& all = work->whole.layers;
  const auto s = static_cast<std::size_t>(stage);
  return {all.begin() + work->first_layers[s], all.begin() + work->first_layers[s + 1]};
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
