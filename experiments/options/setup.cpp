#include "experiments/options/setup.hpp"

#include "experiments/options/machine_options.hpp"
#include "experiments/options/mesh_options.hpp"
#include "experiments/options/optimizer_options.hpp"
#include "experiments/options/parsing.hpp"
#include "experiments/options/schedule_options.hpp"
#include "schedules/bounds.hpp"
#include "schedules/catalog/catalog.hpp"
#include "schedules/check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

namespace troupe {

namespace {

/// Whether the programs of a schedule are sound; the fault, if not.
std::string fault_of(const schedule& sch, const shape& dims) {
  const auto fault = check(sch, settled(sch, dims));
  return fault ? sch.name + ": " + fault->what + "\n" + fault->grid : "";
}

tl::expected<clock_kind, std::string> parse_clock(const std::string& text) {
  if (text == "real" || text.empty())
    return clock_kind::real;
  if (text == "virtual")
    return clock_kind::virtual_time;
  return problem{"--clock " + text + ": the clock is real or virtual"};
}

/// What an action takes in virtual time, for people.
std::string rates_of(const options& o) {
  if (!o.cost.empty())
    return "--cost " + o.cost + " (milliseconds)";
  return std::to_string(static_cast<int>(operations_a_nanosecond))
         + " operations a nanosecond and rank, messages in no time; --cost says other "
           "costs";
}

/// What an evaluation takes beside a training.
std::int64_t bytes_of_evaluation(const run_plan& plan) {
  return evaluator::bytes(plan.work->whole, evaluation_batch(plan), plan.threads);
}

/// The run of one schedule, after the options that all runs share.
tl::expected<run_request, std::string> request(const schedule_text& what,
                                               const options& o, run_plan plan) {
  run_request result{what.text, std::move(plan), {}};
  for (const auto& value : what.values)
    result.parameters.push_back(value);
  auto values = what.values;
  if (result.plan.work) {
    const auto own = with_own_options(o, values);
    const auto optimizer = own ? optimizer_from(*own) : problem{own.error()};
    if (!optimizer)
      return problem{what.name + ": " + optimizer.error()};
    result.plan.work->optimizer = *optimizer;
  }
  auto sch = find_schedule(what.name, values);
  if (!sch)
    return problem{sch.error()};
  result.plan.sch = std::move(*sch);
  if (auto wrong = refusal(result.plan, bytes_of_evaluation); !wrong.empty())
    return problem{wrong};
  if (auto fault = fault_of(result.plan.sch, result.plan.dims); !fault.empty())
    return problem{fault};
  return result;
}

tl::expected<setup, std::string> with_requests(setup shared, const options& o,
                                               const run_plan& plan) {
  const auto named = named_schedules(o.schedules);
  if (!named)
    return problem{named.error()};
  for (const auto& what : *named) {
    auto one = request(what, o, plan);
    if (one)
      shared.runs.push_back(std::move(*one));
    else if (what.of_all)
      shared.left_out.push_back({what.text, one.error()});
    else
      return problem{one.error()};
  }
  if (shared.runs.empty())
    return problem{shared.left_out.front().why};
  return shared;
}

/// The plan of a run by every schedule, as far as its sizes go: of the ranks, and of
/// what each data replica has of a batch.
tl::expected<run_plan, std::string> plan_of(const options& o, int steps) {
  const auto mesh = parse_mesh(o.mesh, o.stages);
  if (!mesh)
    return problem{mesh.error()};
  if (mesh->stages < 1)
    return problem{"--stages is at least 1"};
  const auto exchange = parse_exchange(o.exchange);
  if (!exchange)
    return problem{exchange.error()};
  if (o.microbatches % mesh->data != 0)
    return problem{std::to_string(o.microbatches) + " microbatches cannot be shared by "
                   + std::to_string(mesh->data)
                   + " data replicas: --microbatches must be a multiple of them"};
  constexpr std::int64_t most_ranks = 1 << 20;
  if (const auto many = std::int64_t{mesh->data} * mesh->tensor;
      many > 1 && many * mesh->stages > most_ranks)
    return problem{"--mesh: at most 1,048,576 ranks in all"};
  run_plan plan;
  plan.dims = {mesh->stages, o.microbatches / mesh->data, steps};
  plan.data = mesh->data;
  plan.tensor = mesh->tensor;
  plan.expert = mesh->expert;
  plan.sequence_parallel = o.sequence_parallel && mesh->tensor > 1;
  plan.exchange = *exchange;
  return plan;
}

/// What messages take, and how much slower some data replicas are; what is wrong with
/// that, if anything.
std::string set_costs(const options& o, const costs& cost, run_plan& plan) {
  if (auto wrong = wrong_slowdowns(cost, plan); !wrong.empty())
    return wrong;
  const auto machines = parse_machines(o.machines, cost.link, plan.ranks());
  if (!machines)
    return machines.error();
  if (machines->ranks_each >= plan.ranks())
    return "--machines " + o.machines + ": all " + std::to_string(plan.ranks())
           + (plan.ranks() == 1 ? " rank stands" : " ranks stand")
           + " on one machine, so that nothing passes between machines: put fewer on "
             "each, or leave it out";
  plan.machines = *machines;
  plan.sizes = cost.sizes;
  plan.slowdowns = cost.slowdowns;
  return {};
}

} // namespace

std::string left_out_line(const setup& shared) {
  std::string result;
  for (const auto& [text, why] : shared.left_out)
    result += (result.empty() ? "left out: " : "; ")
              + (why.starts_with(text) ? why : text + ": " + why);
  return result;
}

tl::expected<setup, std::string> set_up_simulation(const options& o) {
  auto plan = plan_of(o, o.steps);
  if (!plan)
    return problem{plan.error()};
  const auto cost = parse_costs(o.cost, plan->dims.stages);
  if (!cost)
    return problem{cost.error()};
  if (auto wrong = set_costs(o, *cost, *plan); !wrong.empty())
    return problem{wrong};
  if (auto wrong = outlasts_clock(*cost, *plan); !wrong.empty())
    return problem{wrong};
  plan->clock = clock_kind::virtual_time;
  plan->cost = costs_from(cost->actions, plan->tensor, plan->state_share_of({}).count);
  setup result;
  result.rates = rates_of(o);
  return with_requests(std::move(result), o, *plan);
}

namespace {

/// What --gate says, and what goes before it.
tl::expected<expert_options, std::string> experts_of(const options& o) {
  if (o.gate != "switch" && o.gate != "gshard")
    return problem{"there is no gate '" + o.gate + "'; there are switch and gshard"};
  const bool two = o.gate == "gshard";
  return expert_options{.count = o.experts,
                        .chosen = o.top_k.value_or(two ? 2 : 1),
                        .capacity = o.capacity.value_or(two ? 1 : 1.25),
                        .balance = o.balance.value_or(0.01),
                        .noise = o.gate_noise,
                        .shared = o.shared_expert,
                        .seed = o.seed};
}

} // namespace

tl::expected<setup, std::string> set_up_training(const options& o) {
  setup result;
  result.model = {o.model, o.layers.value_or(4), o.width, o.heads, o.length, o.words};
  const auto experts = experts_of(o);
  if (!experts)
    return problem{experts.error()};
  result.model.experts = *experts;
  result.model.tied = o.tied;
  auto whole = make_network<float>(result.model);
  if (!whole)
    return problem{whole.error()};
  auto data = open_data(o.data, result.model, o.seed);
  if (!data)
    return problem{data.error()};
  result.data = (*data)->description();
  result.loss_floor = (*data)->loss_floor();
  result.evaluates_training_data = (*data)->evaluates_training_data();
  auto optimizer = optimizer_from(o);
  if (!optimizer)
    return problem{optimizer.error()};
  const auto sizes = parse_split(o.split);
  if (!sizes)
    return problem{sizes.error()};
  auto plan = plan_of(o, o.steps);
  if (!plan)
    return problem{plan.error()};
  const int stages = plan->dims.stages;
  auto first_layers = cut(*whole, stages, *sizes);
  if (!first_layers)
    return problem{first_layers.error()};
  auto weights = initial_weights(*whole, o.seed);
  if (!o.init.empty()) {
    auto read = weights_from(o.init, *whole);
    if (!read)
      return problem{read.error()};
    weights = std::move(*read);
  }
  const auto clock = parse_clock(o.clock);
  if (!clock)
    return problem{clock.error()};
  if (*clock == clock_kind::real && !o.cost.empty())
    return problem{"--cost is for virtual time: say --clock virtual too"};
  if (*clock == clock_kind::real && !o.machines.empty())
    return problem{"--machines is for virtual time: say --clock virtual too"};
  const auto cost = parse_costs(o.cost, stages);
  if (!cost)
    return problem{cost.error()};
  const auto batch = o.batch.value_or(whole->reads_tokens ? 16 : 64);
  if (o.epochs) {
    const auto epoch = (*data)->epoch();
    if (!epoch)
      return problem{"--epochs: synthetic data has no end; say --steps"};
    const double exact =
      std::ceil(*o.epochs * static_cast<double>(*epoch)
                / static_cast<double>(std::max<std::int64_t>(batch, 1)));
    if (!(exact >= 1 && exact <= std::numeric_limits<int>::max()))
      return problem{"--epochs: an epoch of this data is " + std::to_string(*epoch)
                     + " samples; ask for 1 to 2,147,483,647 batches of them"};
    plan->dims.steps = static_cast<int>(exact);
  }
  if (o.evaluate_every < 0 || o.evaluate_samples < 0)
    return problem{"--evaluate-every and --evaluate-samples are at least 0"};
  if (o.threads < 0 || o.threads > 1024)
    return problem{"--threads is from 0 (the machine's cores) to 1,024"};
  if (!(o.stall_timeout >= 0.001 && o.stall_timeout <= 1e6))
    return problem{"--stall-timeout is from 0.001 to 1,000,000 seconds"};
  const int threads =
    o.threads > 0 ? o.threads : static_cast<int>(std::thread::hardware_concurrency());
  std::vector<network<float>> shards;
  if (!whole->experts.empty() && plan->tensor == 1)
    shards.push_back(make_without_experts<float>(result.model));
  if (plan->tensor > 1) {
    auto cut_up =
      make_shards<float>(result.model, plan->tensor, plan->sequence_parallel);
    if (!cut_up)
      return problem{cut_up.error()};
    shards = std::move(*cut_up);
  }
  plan->work = training{.whole = std::move(*whole),
                        .shards = std::move(shards),
                        .experts = result.model.experts,
                        .first_layers = std::move(*first_layers),
                        .data = std::move(*data),
                        .batch = batch,
                        .optimizer = *optimizer,
                        .weights = std::move(weights)};
  if (auto wrong = set_costs(o, *cost, *plan); !wrong.empty())
    return problem{wrong};
  if (auto wrong = outlasts_clock(*cost, *plan); !o.cost.empty() && !wrong.empty())
    return problem{wrong};
  plan->clock = *clock;
  plan->cost = o.cost.empty() ? costs_by_operations()
                              : costs_from(cost->actions, plan->tensor,
                                           plan->state_share_of({}).count);
  plan->threads = std::max(threads, 1);
  if (o.evaluate_samples > 0 && plan->work->data->evaluation_size() > 0)
    plan->evaluate_every = o.evaluate_every;
  if (*clock == clock_kind::virtual_time)
    result.rates = rates_of(o);
  plan->stall_timeout =
    std::chrono::milliseconds{static_cast<std::int64_t>(o.stall_timeout * 1000)};
  return with_requests(std::move(result), o, *plan);
}

} // namespace troupe
