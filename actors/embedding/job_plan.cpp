// SPDX-License-Identifier: BSD-3-Clause
#include "actors/embedding/job_plan.hpp"

#include "actors/checkpoints/checkpoint_folder.hpp"
#include "actors/embedding/job_facts.hpp"
#include "actors/mail/relay.hpp"
#include "actors/mail/thrown.hpp"
#include "actors/meetings/user_meeting.hpp"
#include "actors/nodes/node_limits.hpp"
#include "actors/nodes/node_links.hpp"
#include "actors/nodes/node_maps.hpp"
#include "actors/proof/proof.hpp"
#include "actors/run/timing.hpp"
#include "kernels/bf16_choice.hpp"
#include "models/data/checked_data.hpp"
#include "models/user_network.hpp"
#include "plan/costs.hpp"
#include "plan/evaluated_parts.hpp"
#include "plan/stage_layers.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace troupe {

tl::expected<network<float>, std::string> network_for(const training_job& job) {
  if (const auto* user_model = std::get_if<user_network>(&job.model))
    return network_of(*user_model);
  const auto& options = std::get<model_options>(job.model);
  if (options.stored == precision::bf16)
    if (const auto path = chosen_bf16_path(); !path)
      return tl::unexpected{path.error()};
  return make_network<float>(options);
}

namespace {

using problem = tl::unexpected<std::string>;

/// Returns the error in a job's numbers; empty if there is none.
std::string number_error(const training_job& job) {
  if (!job.data)
    return "a training needs data: set data to the result of open_data, or to a "
           "data_set of yours";
  for (const auto& [name, count] :
       {std::pair{"stages", std::int64_t{job.stages}},
        std::pair{"microbatches", std::int64_t{job.microbatches}},
        std::pair{"steps", std::int64_t{job.steps}},
        std::pair{"batch", std::int64_t{job.batch}},
        std::pair{"replicas", std::int64_t{job.replicas}},
        std::pair{"tensor", std::int64_t{job.tensor}},
        std::pair{"expert", std::int64_t{job.expert}}})
    if (count < 1)
      return std::string{name} + " of a job is " + std::to_string(count)
             + ": at least 1 is allowed";
  if (job.microbatches % job.replicas != 0)
    return "microbatches of a job is " + std::to_string(job.microbatches)
           + ": a multiple of replicas, " + std::to_string(job.replicas)
           + ", is allowed";
  if (job.threads < 0 || job.threads > 1024)
    return "threads of a job is " + std::to_string(job.threads)
           + ": 0 to 1024 are allowed";
  if (job.held_out < 0)
    return "held_out of a job is " + std::to_string(job.held_out)
           + ": at least 0 is allowed";
  if (job.stall_timeout.count() < 1)
    return "stall_timeout of a job is " + std::to_string(job.stall_timeout.count())
           + " ms: at least 1 ms is allowed";
  if (job.virtual_time && job.system != nullptr)
    return "virtual_time needs an actor system of the run's own: leave system null";
  if (job.replicas == 1
      && (job.user_exchange || !job.exchange.empty() || !job.compress.empty()))
    return "one data replica exchanges no gradients: set replicas too, or leave "
           "exchange, compress and user_exchange unset";
  if (job.user_exchange && (!job.compress.empty() || job.verify))
    return "a user_exchange makes messages and sums of its own: leave compress and "
           "verify unset";
  if (!std::holds_alternative<model_options>(job.model)
      && (job.tensor > 1 || job.expert > 1))
    return "tensor and expert divide built-in models: set both to 1 for a user_network";
  if (job.user_exchange && !job.exchange.empty())
    return "a job has two exchanges: set only user_exchange, or only exchange = '"
           + job.exchange + "'";
  if (auto error = validation_error(job.optimizer); !error.empty())
    return error;
  if (!std::holds_alternative<model_options>(job.model) && job.device != "cpu")
    return "device '" + job.device
           + "' computes built-in models: set device to cpu for a user_network";
  if (const auto& resume = job.checkpoints.resume;
      !job.begin.empty() && !resume.empty() && resume != "auto")
    return "begin and checkpoints.resume both give initial weights: leave one unset";
  if (job.relays && !job.relays->make)
    return "relays of a job has no function: set relays->make";
  return {};
}

/// How data replicas keep one model; absent if there is one replica.
tl::expected<std::optional<replica_exchange>, std::string>
exchange_of(const training_job& job) {
  if (job.replicas == 1)
    return std::nullopt;
  if (job.user_exchange)
    return replica_exchange{.name = "own", .idea = "the user_exchange of the job"};
  auto exchange = parse_exchange(job.exchange.empty() ? "ring" : job.exchange);
  if (!exchange)
    return problem{"exchange: " + exchange.error()};
  if (!job.compress.empty()) {
    exchange->compression = find_codec(job.compress);
    if (exchange->compression == nullptr)
      return problem{"compress: there is no compression '" + job.compress
                     + "'; there are " + codec_names()};
    if (exchange->updates != update_by::all_replicas)
      return problem{"compress needs an exchange that sums gradients, like ring: "
                     + exchange->name + " sums none"};
  }
  return std::move(*exchange);
}

tl::expected<training, std::string> work_of(const training_job& job) {
  auto whole = network_for(job);
  if (!whole)
    return problem{whole.error()};
  if (auto error = sample_shape_error(*job.data, *whole); !error.empty())
    return problem{error};
  auto first_layers =
    cut(*whole, stages_on(job.pipeline_schedule.where, job.stages), job.split);
  if (!first_layers)
    return problem{first_layers.error()};
  auto weights = initial_weights(*whole, job.seed);
  if (!job.begin.empty()) {
    auto read = weights_from(job.begin, *whole);
    if (!read)
      return problem{read.error()};
    weights = std::move(*read);
  }
  auto data = checked(job.data, *whole);
  training result{.whole = std::move(*whole),
                  .first_layers = std::move(*first_layers),
                  .data = std::move(data),
                  .batch = job.batch,
                  .optimizer = job.optimizer,
                  .weights = std::move(weights),
                  .from_values = !job.begin.empty()};
  if (job.tensor > 1) {
    auto shards = make_shards<float>(std::get<model_options>(job.model), job.tensor,
                                     job.sequence_parallel);
    if (!shards)
      return problem{shards.error()};
    result.shards = std::move(*shards);
  } else if (!result.whole.experts.empty()) {
    const auto& options = std::get<model_options>(job.model);
    result.shards.push_back(make_without_experts<float>(options));
    result.experts = options.experts;
  }
  return result;
}

/// Makes all objects of the user's exchange now, on this thread. The returned maker
/// passes each object to the first call for that stage and replica.
exchange_maker made_before(const run_plan& plan) {
  struct all_made {
    std::mutex lock;
    std::map<std::pair<int, int>, std::unique_ptr<user_exchange>> objects;
  };
  const auto store = std::make_shared<all_made>();
  for (int s = 0; s < plan.dims.stages; ++s)
    for (int r = 0; r < plan.mesh[axis::data]; ++r)
      store->objects[{s, r}] =
        made_by("the maker of " + name_of_user_meeting(s, r),
                [&] { return plan.user_exchange(user_exchange_member(plan, s, r)); });
  return [store](const exchange_member& where) {
    const std::lock_guard guard{store->lock};
    return std::move(store->objects.at({where.stage, where.replica}));
  };
}

/// Whether the ranks' processors are listed one by one.
bool lists_processors(const training_job& job) {
  return job.device != "cuda";
}

/// The processors of a job's ranks. The error is one sentence.
tl::expected<std::vector<processor>, std::string> processors_of(const training_job& job,
                                                                int ranks) {
  if (job.device == "cpu")
    return std::vector<processor>{};
  const bool is_here = job.nodes.addresses.empty();
  auto result = parse_devices(job.device, is_here ? count_of_gpus() : 0);
  if (!result)
    return result;
  if (const auto why = is_here ? absence_of_gpus() : "";
      !result->empty() && !why.empty())
    return problem{"--device " + job.device + ": " + why};
  if (lists_processors(job) && std::ssize(*result) > ranks)
    return problem{"--device lists " + std::to_string(result->size())
                   + " processors, and the job has "
                   + (ranks == 1 ? "one rank" : std::to_string(ranks) + " ranks")
                   + ": list at most one processor for each rank"};
  return result;
}

/// The plan that is the same in all processes of a run, with the processors that the
/// job asks for. Checkpoints and a state to resume from are left out. The error is one
/// sentence.
/// \pre number_error(job).empty()
tl::expected<run_plan, std::string> shared_plan_of(const training_job& job) {
  auto exchange = exchange_of(job);
  if (!exchange)
    return problem{exchange.error()};
  auto asked = parse_devices(job.device, 0);
  if (!asked)
    return problem{asked.error()};
  auto work = work_of(job);
  if (!work)
    return problem{work.error()};
  const shape dims{stages_on(job.pipeline_schedule.where, job.stages),
                   job.microbatches / job.replicas, job.steps};
  if (auto error = validation_error(job.pipeline_schedule, dims, job.replicas);
      !error.empty())
    return problem{error};
  run_plan plan;
  plan.sch = job.pipeline_schedule;
  plan.dims = dims;
  plan.mesh[axis::data] = job.replicas;
  plan.mesh[axis::tensor] = job.tensor;
  plan.mesh[axis::expert] = job.expert;
  plan.sequence_parallel = job.sequence_parallel;
  plan.recomputed_units = job.recomputed_units;
  if (!job.uneven.samples.empty() || !job.uneven.lengths.empty())
    plan.uneven = std::make_shared<const uneven_microbatches>(job.uneven);
  plan.exchange = std::move(*exchange);
  plan.user_exchange = job.user_exchange;
  plan.work = std::move(*work);
  plan.machine.processors = std::move(*asked);
  plan.work->options = facts_of(job, plan);
  plan.machine.clock = job.virtual_time ? clock_kind::virtual_time : clock_kind::real;
  plan.machine.cost = costs_by_operations();
  plan.machine.threads =
    job.threads > 0
      ? job.threads
      : static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
  plan.machine.stall_timeout = job.stall_timeout;
  plan.has_relays = job.relays != nullptr;
  plan.keep.weights = true;
  return plan;
}

/// One sentence about a part of a job that needs all ranks in one process, else an
/// empty text.
std::string one_process_error(const training_job& job) {
  if (job.virtual_time)
    return "nodes run in real time: leave virtual_time false";
  if (job.relays || job.user_exchange)
    return "relays and a user_exchange need all ranks in one process: leave nodes, or "
           "both of these, unset";
  return {};
}

/// One sentence about nodes that cannot perform a job, else an empty text.
/// \param to receives the addresses of the nodes
std::string nodes_error(const training_job& job, planned_job& to) {
  const auto& nodes = job.nodes;
  if (nodes.addresses.empty())
    return nodes.node_map.empty()
             ? ""
             : "node_map of a job names nodes, and the job has none: set "
               "nodes.addresses too, or leave node_map empty";
  if (auto error = one_process_error(job); !error.empty())
    return error;
  if (nodes.failure_timeout.count() < 50 || nodes.failure_timeout.count() > 3'600'000)
    return "failure_timeout of a job is "
           + std::to_string(nodes.failure_timeout.count())
           + " ms: 50 ms to 3,600 s are allowed";
  auto parsed = parse_nodes(nodes.addresses, nodes.tls.has_value(), nodes.insecure);
  if (!parsed)
    return parsed.error();
  to.nodes = std::move(*parsed);
  const int count = static_cast<int>(to.nodes.size());
  return node_map_error(
    to.plan, nodes.node_map.empty() ? default_node_map(to.plan, count) : nodes.node_map,
    count);
}

/// Finds the checkpoints that a job names. Returns one sentence about a mistake, else
/// an empty text.
std::string find_checkpoints_of(const training_job& job, checkpoint_options& o) {
  if (auto error = unreadable_folder_error(o); !error.empty())
    return error;
  find_checkpoints(o);
  if (auto error = validation_error(o); !error.empty())
    return error;
  if (!o.resume.empty() && job.verify)
    return "verify proves a run from its first step on, and resume starts later: leave "
           "verify or checkpoints.resume unset";
  return {};
}

/// Makes a plan resume from the newest checkpoint, if the job names checkpoints.
/// Returns one sentence about a mistake, else an empty text.
std::string resume(planned_job& to) {
  const auto& o = to.checkpoints;
  auto& plan = to.plan;
  plan.copies.checkpoint_every = std::min(o.every, plan.dims.steps);
  if (auto error = change_error(o.change, plan.work->options); !error.empty())
    return error;
  if (o.resume.empty())
    return {};
  auto newest = newest_checkpoint(o.resume, plan.work->whole);
  if (!newest)
    return "--resume: " + newest.error()
           + (checkpoints_at(o.resume).empty()
                ? ""
                : "; no checkpoint of " + o.resume
                    + " can be read: name another folder, or remove these checkpoints");
  to.warnings = newest->passed_over;
  if (auto error = batch_error(*newest, plan.work->batch); !error.empty())
    return error;
  const auto& recorded = newest->facts.training;
  if (recorded)
    if (auto error = changed_fact(
          *recorded, {plan.work->options, plan.work->data->identity()}, o.change);
        !error.empty())
      return "--resume: " + newest->folder.string() + " was trained with " + error;
  if (newest->facts.batches > plan.dims.steps)
    return "--resume: " + newest->folder.string() + " was trained for "
           + std::to_string(newest->facts.batches) + " steps, and the job has "
           + std::to_string(plan.dims.steps) + ": set steps to "
           + std::to_string(newest->facts.batches) + " or more";
  if (newest->facts.batches == plan.dims.steps) {
    to.complete = newest->saved;
    return {};
  }
  plan.dims.steps -= newest->facts.batches;
  resume_from(std::move(newest->saved), plan);
  return state_error(plan);
}

tl::expected<planned_job, std::string> make_plan(const training_job& job) {
  if (auto error = number_error(job); !error.empty())
    return problem{error};
  planned_job result{.checkpoints = job.checkpoints};
  if (auto error = find_checkpoints_of(job, result.checkpoints); !error.empty())
    return problem{error};
  auto begun = job;
  if (!result.checkpoints.resume.empty())
    begun.begin.clear(); // the checkpoint has the values
  auto shared = shared_plan_of(begun);
  if (!shared)
    return problem{shared.error()};
  result.plan = std::move(*shared);
  auto& plan = result.plan;
  const bool is_here = job.nodes.addresses.empty();
  if (auto error = nodes_error(job, result); !error.empty())
    return problem{error};
  if (!is_here)
    result.text = job_text(job, plan);
  auto processors = processors_of(job, plan.ranks());
  if (!processors)
    return problem{processors.error()};
  plan.machine.processors = std::move(*processors);
  plan.keep.record = job.draws;
  if (job.verify) {
    keep_for_proofs(plan);
    if (!is_here)
      prove_on_local_gpu(plan);
    if (auto error = proof_error(plan); !error.empty())
      return problem{error};
  }
  plan.observed.model_times = needs_modelled_times(plan, !is_here);
  if (auto error = resume(result); !error.empty())
    return problem{error};
  if (result.complete)
    return result;
  const auto count_bytes = [&](const run_plan& checked_plan) {
    return job.held_out > 0 ? bytes_of_evaluation(checked_plan, is_here)
                            : caller_bytes{};
  };
  const auto local_ranks =
    is_here ? std::optional<std::vector<int>>{} : std::vector<int>{};
  if (auto error = validation_error(plan, count_bytes, local_ranks); !error.empty())
    return problem{error};
  if (job.user_exchange)
    plan.user_exchange = made_before(plan);
  return result;
}

tl::expected<job_of_node, std::string> make_job_of_node(training_job job) {
  for (const auto& error : {one_process_error(job), number_error(job)})
    if (!error.empty())
      return problem{error};
  job.begin.clear(); // the leader sends the values
  auto plan = shared_plan_of(job);
  if (!plan)
    return problem{plan.error()};
  if (auto error = node_map_error(*plan, default_node_map(*plan, 1), 1); !error.empty())
    return problem{error};
  auto text = job_text(job, *plan);
  return job_of_node{std::move(*plan), std::move(text), lists_processors(job)};
}

/// Calls a function, and turns exceptions of the objects that the job brings into the
/// error.
/// \throws std::bad_alloc
template <class Make>
auto guarded(const Make& make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const not_made& error) {
    return problem{error.what()};
  } catch (...) {
    return problem{"before the run: " + text_of(std::current_exception())};
  }
}

} // namespace

tl::expected<planned_job, std::string> plan_of(const training_job& job) {
  return guarded([&] { return make_plan(job); });
}

tl::expected<job_of_node, std::string> plan_on_node(training_job job) {
  return guarded([&] { return make_job_of_node(std::move(job)); });
}

tl::expected<run_plan, std::string> plan_of_part(const job_of_node& job,
                                                 const mail::prepare& facts) {
  if (auto error = job_difference(facts.options, job.text); !error.empty())
    return problem{error};
  auto plan = job.plan;
  if (std::ssize(facts.node_map) != plan.ranks())
    return problem{std::string{"the leader's request has another number of ranks than "
                               "the job"}};
  const node_limits limits{.threads = plan.machine.threads};
  const auto ranks = ranks_at(facts.node_map, facts.node);
  auto processors = processors_allowed({plan.machine.processors, job.lists_processors},
                                       ranks, facts.node_map.size(), limits);
  if (!processors)
    return problem{processors.error()};
  plan.machine.processors = std::move(*processors);
  plan.copies.checkpoint_every = facts.keep.checkpoint_every;
  plan.copies.keep_steps = facts.keep.steps;
  if (auto error = validation_error(plan, {}, ranks); !error.empty())
    return problem{error};
  return accept_part(std::move(plan), facts, limits);
}

} // namespace troupe
