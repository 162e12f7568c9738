// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/open_data.hpp"
#include "models/network.hpp"
#include "plan/costs.hpp"
#include "plan/run_plan.hpp"
#include "schedules/catalog/catalog.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

/// Plans small enough for tests; a test changes only the parts that matter to the test.
namespace tiny {

using namespace troupe;

inline model_options gpt(std::int64_t layers = 8) {
  return {"gpt", layers, 8, 2, 4, 11};
}

/// Both clocks. Sanitized builds use only the one with threads, which allocates memory
/// as threads do. Bits are the same in every build.
inline std::vector<clock_kind> clocks() {
#ifdef TROUPE_SANITIZED
  return {clock_kind::real};
#else
  return {clock_kind::virtual_time, clock_kind::real};
#endif
}

/// The catalog's schedules that fit these sizes, but one of each kind. Actors see no
/// difference between the others and these.
inline std::vector<catalog_entry> one_of_each_kind(const shape& dims) {
  std::vector<catalog_entry> result;
  for (const std::string_view name :
       {"naive", "gpipe", "1f1b", "interleaved", "zb-v", "chimera", "dualpipev",
        "pipedream", "2bw", "ampnet"})
    if (validation_error(*find_schedule(name), dims).empty())
      result.push_back(*std::ranges::find(catalog(), name, &catalog_entry::name));
  return result;
}

/// Costs of milliseconds, so that a timeline is easy to read.
inline cost_table costs(double f, double b, double u = 0) {
  cost_table result;
  const auto ms = [](double x) { return static_cast<nanoseconds>(x * 1e6); };
  result.by_op[0] = {ms(f)};
  result.by_op[1] = {ms(b)};
  result.by_op[2] = {ms(b / 2)};
  result.by_op[3] = {ms(b / 2)};
  result.by_op[4] = {ms(u)};
  return result;
}

/// A simulation: virtual time, no arithmetic.
inline run_plan simulation(const schedule& sch, shape dims, double f = 1, double b = 2,
                           double u = 0) {
  return {
    .sch = sch,
    .dims = dims,
    .work = {},
    .machine = {.clock = clock_kind::virtual_time, .cost = costs_from(costs(f, b, u))},
    .keep = {.record = true}};
}

/// A training that keeps everything that proofs need.
inline run_plan training_of(const schedule& sch, shape dims, clock_kind clock,
                            const model_options& model = gpt(), std::int64_t batch = 0,
                            int threads = 2) {
  auto whole = *make_network<float>(model);
  auto first_layers = *cut(whole, dims.stages, {});
  auto weights = initial_weights(whole, 3);
  return {
    .sch = sch,
    .dims = dims,
    .work = training{.whole = std::move(whole),
                     .first_layers = std::move(first_layers),
                     .data = *open_data("synthetic", model, 5),
                     .batch = batch > 0 ? batch : 2 * dims.microbatches,
                     .optimizer = {.rate = 0.01},
                     .weights = std::move(weights)},
    .machine = {.clock = clock, .threads = threads, .cost = costs_from(costs(1, 2))},
    .keep = {.record = true, .weights = true, .gradients = true}};
}

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
  plan.mesh[axis::data] = mesh.data;
  plan.mesh[axis::tensor] = mesh.tensor;
  plan.mesh[axis::expert] = mesh.expert;
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
  plan.mesh[axis::data] = data;
  plan.exchange = find_exchange(exchange);
  plan.work.simulated().buckets = buckets;
  plan.work.simulated().gradient = 4.0 * buckets * values;
  return plan;
}

} // namespace tiny
