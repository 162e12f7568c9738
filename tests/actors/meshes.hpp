// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tests/actors/tiny.hpp"

#include <string>
#include <vector>

namespace tiny {

/// The ranks around the pipeline, and the exchange of data replicas.
struct mesh_of_ranks {
  int data = 1;
  int tensor = 1;
  int expert = 1;
  std::string exchange = "ring";
  bool experts = false; ///< The model has experts.
  bool by_sequence = false;
  bool tied = false;
  bool clips = false;
  precision stored = precision::fp32;
  double noise = 0; ///< Of the experts' gate.

  std::string text() const {
    return "data=" + std::to_string(data) + " tensor=" + std::to_string(tensor)
           + " expert=" + std::to_string(expert) + " " + exchange
           + (experts ? " moe" : "") + (by_sequence ? " by sequence" : "")
           + (tied ? " tied" : "") + (clips ? " clipped" : "")
           + (stored == precision::bf16 ? " bf16" : "");
  }
};

/// A schedule's name, and the values that distinguish schedules of that name.
inline std::string kind_of(const schedule& sch) {
  return sch.name + " " + std::to_string(sch.update_every) + " "
         + std::string{sch.weights.name};
}

/// A training on such ranks that keeps everything that proofs need.
inline run_plan training_on(const mesh_of_ranks& mesh, const schedule& sch, shape dims,
                            clock_kind clock) {
  model_options model{mesh.experts ? "moe" : "gpt", 4, 8, 2, 4, 12};
  if (mesh.experts)
    model.experts = {.count = 4, .capacity = 1, .noise = mesh.noise};
  model.stored = mesh.stored;
  model.tied = mesh.tied;
  auto plan = training_of(sch, dims, clock, model);
  plan.data = mesh.data;
  plan.tensor = mesh.tensor;
  plan.expert = mesh.expert;
  plan.exchange = find_exchange(mesh.exchange);
  plan.sequence_parallel = mesh.by_sequence;
  plan.work->batch = 2 * mesh.data * dims.microbatches + 1;
  plan.work->experts = model.experts;
  if (mesh.experts)
    plan.work->shards = {make_without_experts<float>(model)};
  if (mesh.tensor > 1)
    plan.work->shards = *make_shards<float>(model, mesh.tensor, mesh.by_sequence);
  if (mesh.clips)
    plan.work->optimizer.clip = 0.1;
  if (mesh.clips && sch.streams && update_size(sch, dims) != dims.microbatches)
    plan.work->optimizer.scope = clip_scope::stage;
  return plan;
}

/// A simulation of data replicas of one stage with such buckets.
inline run_plan replicas(const std::string& exchange, int data, int buckets,
                         int values) {
  auto plan = simulation(one_f_one_b(), {1, 4});
  plan.data = data;
  plan.exchange = find_exchange(exchange);
  plan.sizes.buckets = buckets;
  plan.sizes.gradient = 4.0 * buckets * values;
  return plan;
}

} // namespace tiny
