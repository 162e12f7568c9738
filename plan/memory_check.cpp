// SPDX-License-Identifier: BSD-3-Clause
#include "plan/memory_check.hpp"

#include "plan/replica_rules.hpp"
#include "plan/stage_pools.hpp"
#include "schedules/bounds.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe {

namespace {

/// Number of buckets of all stages and data replicas, of one tensor shard.
std::int64_t bucket_count(const run_plan& plan) {
  const std::int64_t data = plan.mesh[axis::data];
  if (!plan.work)
    return data * plan.dims.stages * plan.work.simulated().buckets;
  return data * std::ssize(plan.work->whole.layers)
         + data / plan.mesh[axis::expert] * std::ssize(plan.work->whole.experts);
}

std::string megabytes(std::int64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

/// "the machine has 100 MiB free"
std::string text_of(const free_memory& memory) {
  return memory.where + " has " + std::to_string(memory.bytes >> 20) + " MiB free";
}

/// The bytes that a training takes outside its pools: the program itself, the caller,
/// and copies of the parameters. Copies exist in the end when the optimizers have been
/// freed, or in evaluations that put shares together. \param callers bytes
std::int64_t bytes_outside_pools(const run_plan& plan, std::int64_t callers) {
  constexpr std::int64_t value = sizeof(float);
  std::int64_t parameters = 0, largest = 0, optimizers = 0;
  for (const auto& l : plan.work->whole.layers) {
    parameters += l->bucket() * value;
    largest = std::max(largest, l->bucket() * value);
  }
  for (int rank = 0; rank < plan.ranks(); ++rank)
    for (const auto& where : plan.hosted_by(rank))
      optimizers += pools_of(plan, where).optimizer * value;
  const auto copies = parameters + 2 * largest;
  const bool puts_together =
    plan.copies.evaluate_every > 0
    && (!plan.work->shards.empty() || shares_out(plan, shared_out::parameters));
  return bytes_of_program + callers
         + (puts_together ? copies : std::max<std::int64_t>(copies - optimizers, 0));
}

/// Bytes of the copies for a checkpoint that come from ranks elsewhere. For a kept step
/// these are one data replica's copies, and the network put together of those.
std::int64_t incoming_bytes(const run_plan& plan) {
  const auto values_of = [](const copies_bound& copies) {
    return copies.versions.buffers * copies.versions.values
           + copies.state.buffers * copies.state.values;
  };
  std::int64_t saved = 0, kept = 0;
  for (int rank = 0; rank < plan.ranks(); ++rank)
    for (const auto& where : plan.hosted_by(rank)) {
      saved += values_of(saved_copies(plan, where));
      if (where.data < plan.mesh[axis::expert])
        kept += values_of(kept_copies(plan, where));
    }
  return (saved + 2 * kept) * std::int64_t{sizeof(float)};
}

/// The error of a run that needs more memory of a GPU than is free; empty if there is
/// enough.
std::string check_gpu_memory(const std::vector<processor>& of_each,
                             const std::vector<std::int64_t>& bytes,
                             const std::map<int, std::int64_t>& other_bytes,
                             const std::map<int, gpu_memory>& gpus) {
  constexpr std::int64_t workspaces = 32 << 20;       // of a stream: cuBLASLt's
  std::map<int, std::pair<std::int64_t, int>> needed; // bytes, and number of ranks
  for (const auto& [gpu, gpu_bytes] : other_bytes)
    needed[gpu].first = gpu_bytes + workspaces;
  for (std::size_t i = 0; i < of_each.size(); ++i)
    if (of_each[i].is_gpu()) {
      auto& [sum, count] = needed[of_each[i].gpu];
      sum += bytes[i] + workspaces;
      ++count;
    }
  for (const auto& [gpu, need] : needed) {
    const processor where{gpu};
    const auto known = gpus.find(gpu);
    if (const auto free = known == gpus.end() ? 0 : known->second.free_bytes;
        need.first > free)
      return "this run needs at least " + megabytes(need.first) + " of "
             + to_string(where) + "'s memory (" + std::to_string(need.second)
             + (need.second == 1 ? " rank" : " ranks")
             + (other_bytes.contains(gpu) ? " and evaluations" : "") + "), and only "
             + std::to_string(free >> 20) + " MiB are free";
  }
  return {};
}

/// Bytes of work space for cuDNN's backward of attention on each rank of a GPU:
/// gradients of all scores in bf16, and dots of rows in fp32. 0 if kernels of this
/// program compute attention (kernels/cuda/library_attention.hpp).
std::int64_t attention_workspace(const run_plan& plan) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  const auto& options = plan.work->whole.options;
  if (options.stored != precision::bf16 || !plan.work->whole.reads_tokens)
    return 0;
  const auto rows = plan.batches().largest() * (options.heads / plan.mesh[axis::tensor])
                    * options.length;
  const auto scores = 2 * rows * options.length;
  return scores > most ? 0 : scores + 4 * rows;
}

} // namespace

// Constants are measured, rounded up.
std::int64_t bytes_of_actors(const run_plan& plan) {
  constexpr std::int64_t bytes_a_stage = 20'000; // of each direction
  constexpr std::int64_t bytes_a_layer = 2'000;  // of a training, outside tensors
  constexpr std::int64_t bytes_a_tensor = 4'000; // a bucket that has values
  constexpr std::int64_t bytes_a_message = 500;  // a bucket of a simulation
  constexpr std::int64_t bytes_a_push = 200;     // of each replica to each server
  const std::int64_t data = plan.mesh[axis::data], tensor = plan.mesh[axis::tensor];
  const std::int64_t shards = data * tensor * plan.dims.stages;
  const auto buckets = tensor * bucket_count(plan);
  const bool exchanges = data > 1 || plan.directions() > 1;
  std::int64_t a_bucket = plan.work ? bytes_a_layer : 0;
  if (exchanges)
    a_bucket += plan.work ? bytes_a_tensor : bytes_a_message;
  const auto pushes = updates_are_by(plan, update_by::servers) ? shards * data : 0;
  return plan.directions() * (shards * bytes_a_stage + buckets * a_bucket)
         + pushes * bytes_a_push + shards * settled(plan.sch, plan.dims).total();
}

std::string check_memory(const std::vector<std::int64_t>& bytes,
                         std::int64_t other_bytes, const free_memory& memory) {
  std::int64_t sum = other_bytes;
  for (const auto rank : bytes)
    sum += rank;
  if (sum <= memory.bytes)
    return {};
  return "this run needs " + megabytes(sum) + " of memory"
         + (bytes.size() > 1 ? " (" + megabytes(*std::ranges::max_element(bytes))
                                 + " on its largest rank)"
                             : "")
         + "; " + text_of(memory);
}

std::string check_processor_memory(const std::vector<processor>& of_each,
                                   const std::vector<std::int64_t>& bytes,
                                   const caller_bytes& other_bytes,
                                   const machine_memory& machine) {
  if (auto error = check_gpu_memory(of_each, bytes, other_bytes.of_gpus, machine.gpus);
      !error.empty())
    return error;
  auto of_machine = bytes;
  for (std::size_t i = 0; i < of_each.size(); ++i)
    if (of_each[i].is_gpu())
      of_machine[i] = 0;
  return check_memory(of_machine, other_bytes.of_machine, machine.host);
}

std::set<int> gpus_among(const std::vector<processor>& processors) {
  std::set<int> result;
  for (const auto& each : processors)
    if (each.is_gpu())
      result.insert(each.gpu);
  return result;
}

std::string check_memory_of_ranks(const run_plan& plan, const std::vector<int>& ranks,
                                  const std::vector<std::int64_t>& bytes,
                                  const caller_bytes& other_bytes,
                                  const machine_memory& machine) {
  std::vector<processor> of_each;
  auto with_workspaces = bytes;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    of_each.push_back(plan.machine.processor_of(ranks[i]));
    if (of_each.back().is_gpu())
      with_workspaces[i] += attention_workspace(plan);
  }
  return check_processor_memory(of_each, with_workspaces, other_bytes, machine);
}

std::string check_memory_of_actors(const run_plan& plan, const free_memory& memory) {
  return check_memory({bytes_of_actors(plan)}, 0, memory);
}

std::string check_size(const run_plan& plan) {
  double values = 0;
  const auto samples = static_cast<double>(plan.batches().largest());
  for (const auto& l : plan.work->whole.layers)
    values += static_cast<double>(l->bucket())
              + samples * static_cast<double>(l->input_size(1) + l->output_size(1));
  const double most = 1e15;
  if (values * sizeof(float) < most)
    return {};
  return "this run needs more than " + megabytes(static_cast<std::int64_t>(most))
         + " of memory; " + text_of(memory_of_process());
}

std::string check_memory_of_training(const run_plan& plan,
                                     const caller_bytes_counter& count_caller_bytes,
                                     const std::optional<std::vector<int>>& local_ranks,
                                     const machine_memory& machine) {
  const auto needed = bytes_needed(plan);
  const auto ranks = local_ranks ? *local_ranks : all_ranks(plan);
  std::vector<std::int64_t> bytes;
  for (const int rank : ranks)
    bytes.push_back(needed[static_cast<std::size_t>(rank)]);
  const bool leads_only = ranks.empty();
  auto other_bytes = count_caller_bytes ? count_caller_bytes(plan) : caller_bytes{};
  other_bytes.of_machine = bytes_outside_pools(plan, other_bytes.of_machine)
                           + (leads_only ? incoming_bytes(plan) : 0);
  return check_memory_of_ranks(plan, ranks, bytes, other_bytes, machine);
}

} // namespace troupe
