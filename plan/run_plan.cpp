// SPDX-License-Identifier: BSD-3-Clause
#include "plan/run_plan.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace troupe {

std::string run_plan::name_of(position p) const {
  const auto name = stage_name({replica_at(p), p.stage});
  return mesh[axis::tensor] > 1
           ? name + " (tensor shard " + std::to_string(p.tensor) + ")"
           : name;
}

std::string run_plan::optimizer_of(position p) const {
  auto name = "optimizer of stage " + std::to_string(p.stage);
  if (p.data > 0)
    name += " (data replica " + std::to_string(p.data) + ")";
  if (mesh[axis::tensor] > 1)
    name += " (tensor shard " + std::to_string(p.tensor) + ")";
  return name;
}

std::string run_plan::server_of(position p) const {
  return "parameter server of stage " + std::to_string(p.stage) + " (share "
         + std::to_string(p.data) + ")";
}

std::string run_plan::source_of(position p) const {
  return p.data > 0 ? "data_source of data replica " + std::to_string(p.data)
                    : "data_source";
}

int run_plan::rank_of(position p) const {
  const int in_pipe = troupe::rank_of(sch.where, dims, p.hosted());
  return (p.data * ranks_of_pipeline() + in_pipe) * mesh[axis::tensor] + p.tensor;
}

stage_bounds run_plan::bounds_of(hosted_stage where) const {
  const int rank = troupe::rank_of(sch.where, dims, where);
  const auto hosted = troupe::hosted_by(sch.where, dims, rank);
  const auto bounds = troupe::bounds_of(sch, settled(sch, dims), rank);
  return bounds[static_cast<std::size_t>(std::ranges::find(hosted, where)
                                         - hosted.begin())];
}

rank_mesh run_plan::ranks_by_axis() const {
  if (mesh[axis::expert] < 1 || mesh[axis::data] % mesh[axis::expert] != 0)
    throw std::logic_error("the ranks of a plan that is not valid were asked for");
  auto of_axes = mesh;
  of_axes[axis::data] /= mesh[axis::expert];
  of_axes[axis::pipe] = ranks_of_pipeline();
  return rank_mesh(of_axes);
}

std::vector<position> run_plan::hosted_by(int rank) const {
  std::vector<position> result;
  for (const auto& h : troupe::hosted_by(sch.where, dims, pipe_rank(rank)))
    result.push_back({data_of(rank), h.direction, h.stage, shard_of(rank)});
  return result;
}

batching run_plan::batches() const {
  const int microbatches = mesh[axis::data] * dims.microbatches;
  const auto batch = work ? work->batch : microbatches;
  return {batch, microbatches, dims.batches_before * batch, uneven};
}

double run_plan::part_of_largest(int of_data, int microbatch) const {
  if (!uneven)
    return 1;
  const auto all_batches = batches();
  const auto longest = work ? work->whole.rows : std::int64_t{1};
  const auto tokens = [&](const microbatch_shape& dimensions) {
    return static_cast<double>(dimensions.samples
                               * (dimensions.length > 0 ? dimensions.length : longest));
  };
  double most = 0;
  for (const auto& dimensions : all_batches.shapes())
    most = std::max(most, tokens(dimensions));
  return tokens(all_batches.shape_of(microbatch_of_all(of_data, microbatch))) / most;
}

int run_plan::microbatch_of_all(int of_data, int microbatch) const {
  const int share = dims.microbatches;
  return (microbatch / share * mesh[axis::data] + of_data) * share + microbatch % share;
}

std::vector<int> all_ranks(const run_plan& plan) {
  std::vector<int> result(static_cast<std::size_t>(plan.ranks()));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

} // namespace troupe
