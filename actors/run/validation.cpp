// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/memory_check.hpp"
#include "actors/run/perform.hpp"
#include "schedules/bounds.hpp"
#include "schedules/check.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace troupe {

namespace {

/// Returns an error if experts cannot be placed as planned; empty if they can, or there
/// are none.
std::string error_of_experts(const run_plan& plan) {
  if (plan.data % plan.expert != 0)
    return "expert=" + std::to_string(plan.expert)
           + " does not divide data=" + std::to_string(plan.data)
           + ": experts are spread over groups of equal size. Change one of them in "
             "--mesh";
  if (plan.work ? plan.work->whole.experts.empty() : plan.expert == 1)
    return plan.expert > 1 ? "expert=" + std::to_string(plan.expert)
                               + " in --mesh spreads experts, which only moe has: say "
                                 "--model moe, or leave it out"
                           : "";
  if (plan.work && plan.work->experts.count % plan.expert != 0)
    return std::to_string(plan.work->experts.count) + " experts cannot be spread over "
           + std::to_string(plan.expert)
           + " data replicas, each with equally many: change --experts, or expert= in "
             "--mesh";
  if (plan.tensor > 1)
    return "a network with experts cannot be cut into tensor shards: give --mesh "
           "tensor=1";
  if (plan.shares_out(shared_out::gradients))
    return plan.exchange->name + " leaves a stage a share of its gradients"
           + (plan.shares_out(shared_out::parameters) ? " and parameters" : "")
           + ", but an expert needs all of its own: give another --exchange, as ring, "
             "zero1 or server";
  if (plan.data > 1 && plan.exchange->updates != update_by::all_replicas)
    return plan.exchange->name
           + " updates data replicas one by one, but experts serve several of them: "
             "give an --exchange that sums, as ring";
  return {};
}

/// Returns an error if ranks cannot use the planned GPUs; empty if ranks can.
/// \param local_ranks the ranks on this machine; absent: all
std::string error_of_gpus(const run_plan& plan,
                          const std::optional<std::vector<int>>& local_ranks) {
  processor first;
  for (const int rank : local_ranks.value_or(all_ranks(plan))) {
    const auto where = plan.processor_of(rank);
    if (!where.is_gpu())
      continue;
    if (first.is_gpu() && facts_of(where).kind != facts_of(first).kind)
      return "--device: the GPUs of a run must be of one kind, as kinds differ in "
             "their bits, and "
             + to_string(first) + " is " + facts_of(first).kind + ", "
             + to_string(where) + " " + facts_of(where).kind;
    first = where;
  }
  return {};
}

/// Returns an error if a run cannot be saved between batches, or cannot resume there;
/// empty if a run can.
std::string error_of_checkpoints(const run_plan& plan) {
  if (plan.pause_every() == 0 && plan.dims.batches_before == 0)
    return {};
  if (plan.data > 1 && !plan.replicas_agree())
    return plan.exchange->name
           + " updates data replicas one by one, so that they have no common network "
             "to save: leave --checkpoint out, or give an --exchange that sums, as "
             "ring or server";
  const int size = update_size(plan.sch, plan.dims);
  if (plan.work->whole.tied() && plan.sch.asynchronous() && plan.sch.update_every > 0)
    return plan.sch.name
           + " reads versions of a tied matrix at different times at its two ends, and "
             "a checkpoint has one of each version: give a flush schedule or 2bw, or "
             "leave --tied out";
  if (!plan.sch.local_rule()
      && std::int64_t{plan.pause_every()} * plan.dims.microbatches % size != 0)
    return plan.sch.name + " updates every " + std::to_string(size)
           + " microbatches, and a batch has " + std::to_string(plan.dims.microbatches)
           + (plan.keep_steps ? ": not every step can be kept: leave --keep-steps out, "
                                "and take checkpoints"
                              : ": take checkpoints")
           + " after batches that end with an update, as every "
           + std::to_string(std::lcm(size, plan.dims.microbatches)
                            / plan.dims.microbatches);
  return {};
}

/// Returns an error if some stage has no other replica that keeps the same state; empty
/// if each stage has one.
std::string error_of_kept_steps(const run_plan& plan) {
  if (!plan.keep_steps)
    return {};
  const std::string wants =
    "--keep-steps continues from the copies of other data replicas";
  if (plan.data / plan.expert < 2)
    return wants + ": say --mesh data=" + std::to_string(2 * plan.expert)
           + " or more too, or leave it out";
  if (plan.state_shares() > 1)
    return wants + ", but under " + plan.exchange->name
           + " no other replica has the same share of the optimizer: give an "
             "--exchange that only sums, as ring, or leave it out";
  return {};
}

/// Returns an error if a tied matrix cannot be trained as planned; empty if one can, or
/// there is none.
std::string error_of_tied(const run_plan& plan) {
  if (!plan.work->whole.tied())
    return {};
  // All stages' update t is of batch t, and makes version t of all.
  if (plan.sch.local_rule()
      || update_size(plan.sch, plan.dims) != plan.dims.microbatches
      || version_read(plan.sch, plan.dims, 0, plan.dims.total() - 1)
           != version_read(plan.sch, plan.dims, plan.dims.stages - 1,
                           plan.dims.total() - 1))
    return plan.sch.name
           + "'s first and last stage update at different times, so that a tied matrix "
             "would differ between them: give a flush schedule or 2bw, or leave --tied "
             "out";
  if (!plan.updates_are_by(update_by::all_replicas))
    return plan.exchange->name
           + " updates data replicas one by one, so that the two copies of a tied "
             "matrix would differ: give an --exchange that sums, as ring, or leave "
             "--tied out";
  if (plan.work->optimizer.clip > 0 && plan.work->optimizer.scope == clip_scope::stage)
    return "clip=stage would clip the two copies of a tied matrix differently: clip by "
           "the network's norm (--clip alone), or leave --tied out";
  return {};
}

/// Returns an error if forwards cannot run again in segments; empty if forwards can, or
/// need not.
std::string error_of_recomputation(const run_plan& plan) {
  if (plan.recomputed_units < 0)
    return "--recompute blocks=: a stage recomputes at least 1 block or layer at once";
  if (!plan.recomputes() || plan.recomputed_units == 0)
    return {};
  if (plan.shares_out(shared_out::gradients))
    return plan.exchange->name
           + " gathers and sums the layers of a stage one after another, which blocks "
             "of --recompute do not allow: say --recompute stage, or give another "
             "--exchange";
  if (!plan.work && plan.sizes.buckets == 1)
    return "--recompute blocks= needs the number of a stage's layers: give it by "
           "--cost buckets=8, or say --recompute stage";
  return {};
}

/// Returns an error if microbatches cannot be uneven as planned; empty if microbatches
/// can, or are even.
std::string error_of_uneven(const run_plan& plan) {
  if (!plan.uneven)
    return {};
  const auto& [samples, lengths] = *plan.uneven;
  const int microbatches = plan.batches().microbatches;
  if (!samples.empty() && std::ssize(samples) != microbatches)
    return "a batch has " + std::to_string(microbatches) + " microbatches, but "
           + std::to_string(samples.size())
           + " sizes: give --microbatch-sizes one for each";
  if (!samples.empty() && std::ranges::min(samples) < 1)
    return "--microbatch-sizes: each microbatch has at least 1 sample";
  if (std::ssize(lengths) > microbatches)
    return "a batch has " + std::to_string(microbatches) + " microbatches, but "
           + std::to_string(lengths.size())
           + " lengths: give --sequence-lengths at most one for each; they are taken "
             "in rotation";
  if (!lengths.empty() && std::ranges::min(lengths) < 1)
    return "--sequence-lengths: a sequence has at least 1 token";
  if (!plan.work)
    return {};
  const auto total_samples =
    std::accumulate(samples.begin(), samples.end(), std::int64_t{0});
  if (!samples.empty() && total_samples != plan.work->batch)
    return "--microbatch-sizes: the microbatches have " + std::to_string(total_samples)
           + " samples together, but " + "the batch has "
           + std::to_string(plan.work->batch);
  if (lengths.empty())
    return {};
  const auto& whole = plan.work->whole;
  if (whole.options.model != "gpt" && whole.options.model != "moe")
    return "--sequence-lengths is of gpt and moe: say --model gpt or moe, or leave it "
           "out";
  if (std::ranges::max(lengths) > whole.rows)
    return "a sequence of " + std::to_string(std::ranges::max(lengths))
           + " tokens is longer than the model's: say --seq "
           + std::to_string(std::ranges::max(lengths));
  const bool divides = std::ranges::all_of(
    lengths, [&](std::int64_t length) { return length % plan.tensor == 0; });
  if (plan.sequence_parallel && !divides)
    return "--sequence-parallel divides positions between tensor shards: each of "
           "--sequence-lengths must be a multiple of tensor="
           + std::to_string(plan.tensor);
  return {};
}

/// Returns an error if a user's meeting cannot take the place of the sum; empty if it
/// can, or there is none.
std::string error_of_user_exchange(const run_plan& plan) {
  if (!plan.user_exchange)
    return {};
  if (!plan.work || plan.tensor > 1 || !plan.exchanges_at_update()
      || plan.exchange->shares != shared_out::nothing)
    return "an exchange of your own sums gradients of data replicas that each update "
           "all parameters: give tensor=1, and no other exchange";
  if (!plan.work->whole.experts.empty())
    return "an exchange of your own is between all data replicas, and an expert of moe "
           "may serve some of them: train another model, as gpt, or give an exchange "
           "that sums, as ring";
  if (plan.work->whole.tied())
    return "an exchange of your own is one of a stage, and a tied matrix has gradients "
           "in two: train untied, or give an exchange that sums, as ring";
  return {};
}

std::string error_of_exchange(const run_plan& plan) {
  const auto& exchange = *plan.exchange;
  if (auto error = error_of_user_exchange(plan); !error.empty())
    return error;
  if (plan.sch.local_rule() && exchange.updates == update_by::all_replicas)
    return plan.sch.name
           + "'s stages update as soon as they have enough gradients, so that data "
             "replicas have no common updates: give --mesh data=1, or --exchange "
             "server:async or hogwild, or name other schedules";
  if (plan.sch.local_rule() && exchange.staleness)
    return plan.sch.name
           + "'s ranks are idle while a stage updates, so that they cannot wait there "
             "for slower replicas: give --exchange server:async or hogwild, or name "
             "other schedules";
  if (plan.tensor > 1 && exchange.updates != update_by::all_replicas)
    return exchange.name
           + " may update tensor shards of a stage in different orders, so that their "
             "common parameters would differ: give --mesh tensor=1, or another "
             "--exchange";
  return {};
}

/// Returns an error if the computations of a plan cannot be run as planned; empty if
/// these can.
std::string error_of_work(const run_plan& plan) {
  if (auto error = error_of_tied(plan); !error.empty())
    return error;
  if (auto error = error_of_kept_steps(plan); !error.empty())
    return error;
  if (auto error = error_of_checkpoints(plan); !error.empty())
    return error;
  const auto& work = *plan.work;
  if (const int pieces = plan.batches().microbatches; work.batch < pieces)
    return "a batch of " + std::to_string(work.batch) + " samples cannot be cut into "
           + std::to_string(pieces)
           + " microbatches: there must be at least one sample in each. Give a larger "
             "--batch or fewer --microbatches";
  if (work.batch > std::numeric_limits<std::int32_t>::max())
    return "--batch: a batch has at most 2,147,483,647 samples";
  if (auto error = check_size(plan); !error.empty())
    return error;
  const bool updates_a_batch =
    !plan.sch.local_rule()
    && update_size(plan.sch, plan.dims) == plan.dims.microbatches;
  if (work.optimizer.clip > 0 && work.optimizer.scope == clip_scope::network
      && !updates_a_batch)
    return plan.sch.name
           + " never has all gradients of an update at once, so that it cannot clip by "
             "their global norm: say "
           + plan.sch.name + (plan.sch.name.find(':') == std::string::npos ? ":" : ",")
           + "clip=stage, which clips each stage by a norm of its own";
  return {};
}

} // namespace

std::string validation_error(const run_plan& plan,
                             const caller_bytes_counter& count_caller_bytes,
                             const std::optional<std::vector<int>>& local_ranks) {
  if (auto error = validation_error(plan.sch, plan.dims); !error.empty())
    return plan.data == 1
             ? error
             : error + " (each of " + std::to_string(plan.data) + " data replicas has "
                 + std::to_string(plan.dims.microbatches) + " microbatches of a batch)";
  constexpr std::int64_t most_microbatches = (1 << 30) - 1;
  if (std::int64_t{plan.data} * plan.dims.total() > most_microbatches)
    return "--steps and --microbatches: a run has at most 1,073,741,823 microbatches, "
           "over all data replicas";
  if (plan.data > 1)
    if (auto error = error_of_exchange(plan); !error.empty())
      return error;
  if (plan.tensor > 1 && plan.sch.local_rule())
    return plan.sch.name
           + "'s ranks choose among inputs that have arrived, so that tensor shards "
             "could choose differently: give --mesh tensor=1, or name other schedules";
  if (auto error = error_of_experts(plan); !error.empty())
    return error;
  if (auto error = error_of_recomputation(plan); !error.empty())
    return error;
  if (auto error = error_of_uneven(plan); !error.empty())
    return error;
  if (plan.work)
    if (auto error = error_of_work(plan); !error.empty())
      return error;
  if (auto error = check_memory_of_actors(plan); !error.empty())
    return error;
  // Stashes can be counted only of programs that are right.
  if (const auto fault = check(plan.sch, settled(plan.sch, plan.dims)))
    return plan.sch.name + ": " + to_string(*fault);
  if (auto error = error_of_gpus(plan, local_ranks); !error.empty())
    return error;
  return plan.work ? check_memory_of_training(plan, count_caller_bytes, local_ranks)
                   : "";
}

} // namespace troupe
