#include "experiments/support/setup.hpp"

#include "experiments/support/machine_options.hpp"
#include "experiments/support/parsing.hpp"
#include "messaging/collective_catalog.hpp"
#include "schedules/bounds.hpp"
#include "schedules/catalog.hpp"
#include "schedules/check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <thread>

namespace troupe {

namespace {

/// A schedule's name, and what stands behind it.
struct schedule_text {
  std::string name;
  std::map<std::string, std::string> values;
};

tl::expected<schedule_text, std::string> parse_schedule(const std::string& text) {
  const auto colon = text.find(':');
  schedule_text result{text.substr(0, colon), {}};
  if (colon == std::string::npos)
    return result;
  for (const auto& part : split(text.substr(colon + 1), ',')) {
    const auto equals = part.find('=');
    if (equals == std::string::npos || equals == 0)
      return problem{"'" + text + "': write a schedule as NAME:parameter=value,..."};
    auto key = part.substr(0, equals);
    std::ranges::replace(key, '-', '_');
    result.values[key] = part.substr(equals + 1);
  }
  return result;
}

/// What is out of range, and what the range is.
std::string out_of_range(const optimizer_options& o) {
  for (const auto& [name, value] : {std::pair{"lr", o.rate},
                                    {"weight decay", o.weight_decay},
                                    {"momentum", o.momentum},
                                    {"eps", o.epsilon}})
    if (!std::isfinite(value) || value < 0)
      return std::string{name} + " is a number of at least 0";
  for (const auto& [name, value] :
       {std::pair{"momentum", o.momentum}, {"beta1", o.beta1}, {"beta2", o.beta2}})
    if (value >= 1)
      return std::string{name} + " is below 1";
  if (o.kind == optimizer_kind::adamw && static_cast<float>(o.epsilon) == 0)
    return "eps of adamw is at least 1e-45: with less, a gradient of 0 is divided by 0";
  return {};
}

tl::expected<optimizer_options, std::string> base_optimizer(const options& o) {
  optimizer_options result;
  if (o.optimizer != "sgd" && o.optimizer != "adamw")
    return problem{"there is no optimizer '" + o.optimizer
                   + "'; there are sgd and adamw"};
  result.kind = o.optimizer == "sgd" ? optimizer_kind::sgd : optimizer_kind::adamw;
  const bool sgd = result.kind == optimizer_kind::sgd;
  result.rate = o.rate.value_or(sgd ? 0.1 : 1e-3);
  result.weight_decay = o.weight_decay.value_or(sgd ? 0.0 : 0.01);
  result.momentum = o.momentum;
  result.epsilon = o.epsilon;
  const auto betas = split(o.betas, ',');
  const auto beta1 = betas.size() == 2 ? number(betas[0]) : std::nullopt;
  const auto beta2 = betas.size() == 2 ? number(betas[1]) : std::nullopt;
  if (!beta1 || !beta2 || *beta1 >= 1 || *beta2 >= 1)
    return problem{"--betas " + o.betas
                   + ": write two numbers from 0 to below 1, as 0.9,0.999"};
  result.beta1 = *beta1;
  result.beta2 = *beta2;
  if (o.decay != "all" && o.decay != "matrices")
    return problem{"--decay " + o.decay + ": decay is of all or of matrices"};
  result.decay_only_matrices = o.decay == "matrices";
  auto rates = rate_schedule::parse(o.rate_schedule);
  if (!rates)
    return problem{rates.error()};
  result.schedule = *rates;
  const auto clip = number(o.clip);
  if (!clip)
    return problem{"--clip " + o.clip
                   + ": clip is a norm of at least 0; 0 does not clip"};
  result.clip = *clip;
  if (auto wrong = out_of_range(result); !wrong.empty())
    return problem{wrong};
  return result;
}

/// Takes the options of the optimizer out of a schedule's values, and sets them.
std::string set_own_options(std::map<std::string, std::string>& values,
                            optimizer_options& optimizer) {
  const std::map<std::string, double*> numbers{
    {"lr", &optimizer.rate},     {"momentum", &optimizer.momentum},
    {"eps", &optimizer.epsilon}, {"weight_decay", &optimizer.weight_decay},
    {"beta1", &optimizer.beta1}, {"beta2", &optimizer.beta2}};
  for (const auto& [key, place] : numbers)
    if (const auto found = values.extract(key)) {
      const auto value = number(found.mapped());
      if (!value)
        return key + "=" + found.mapped() + ": " + key + " is a number of at least 0";
      *place = *value;
    }
  if (const auto clip = values.extract("clip")) {
    if (clip.mapped() == "stage") {
      if (optimizer.clip == 0)
        return "clip=stage needs a norm: say --clip too";
      optimizer.scope = clip_scope::stage;
    } else if (const auto norm = number(clip.mapped())) {
      optimizer.clip = *norm;
    } else {
      return "clip=" + clip.mapped() + ": clip is a norm of at least 0, or stage";
    }
  }
  return out_of_range(optimizer);
}

tl::expected<std::vector<int>, std::string> parse_split(const std::string& text) {
  std::vector<int> result;
  for (const auto& part : split(text, ',')) {
    const auto value = number(part);
    if (!value || *value != std::floor(*value) || *value > 1e6)
      return problem{"--split " + text + ": write whole numbers, as 2,2,1,1"};
    result.push_back(static_cast<int>(*value));
  }
  return result;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string result;
  for (const auto& part : parts)
    result += (result.empty() ? "" : ",") + part;
  return result;
}

/// The schedules a user named; all of them by default.
std::vector<std::string> named_schedules(const options& o) {
  auto text = joined(o.schedules);
  if (text == "all") {
    text.clear();
    for (const auto& entry : catalog())
      text += (text.empty() ? "" : ",") + std::string{entry.name};
  }
  return split_schedules(text);
}

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

/// The run of one schedule, after the options that all runs share.
tl::expected<run_request, std::string> request(const std::string& text, run_plan plan) {
  auto parsed = parse_schedule(text);
  if (!parsed)
    return problem{parsed.error()};
  run_request result{text, std::move(plan), {}};
  for (const auto& value : parsed->values)
    result.parameters.push_back(value);
  if (result.plan.work)
    if (auto wrong = set_own_options(parsed->values, result.plan.work->optimizer);
        !wrong.empty())
      return problem{parsed->name + ": " + wrong};
  auto sch = find_schedule(parsed->name, parsed->values);
  if (!sch)
    return problem{sch.error()};
  result.plan.sch = std::move(*sch);
  if (auto wrong = refusal(result.plan); !wrong.empty())
    return problem{wrong};
  if (auto fault = fault_of(result.plan.sch, result.plan.dims); !fault.empty())
    return problem{fault};
  return result;
}

tl::expected<setup, std::string> with_requests(setup shared, const options& o,
                                               const run_plan& plan) {
  for (const auto& text : named_schedules(o)) {
    auto one = request(text, plan);
    if (!one)
      return problem{one.error()};
    for (const auto& other : shared.runs)
      if (other.text == text)
        return problem{text + " is named twice: name each run once"};
    shared.runs.push_back(std::move(*one));
  }
  return shared;
}

} // namespace

std::vector<std::string> split_schedules(const std::string& text) {
  std::vector<std::string> result;
  for (const auto& part : split(text, ',')) {
    const bool parameter =
      part.find('=') != std::string::npos && part.find(':') == std::string::npos;
    if (parameter && !result.empty())
      result.back() += "," + part;
    else
      result.push_back(part);
  }
  if (result.empty())
    result.emplace_back(); // so that it is refused by name like any other
  return result;
}

tl::expected<mesh_options, std::string> parse_mesh(const std::string& text,
                                                   int stages) {
  mesh_options result{.stages = stages};
  std::set<std::string> given;
  for (const auto& part : split(text, ',')) {
    const auto equals = part.find('=');
    const auto axis = part.substr(0, equals);
    const auto size =
      equals == std::string::npos ? std::nullopt : number(part.substr(equals + 1));
    const std::map<std::string, int*> axes{{"data", &result.data},
                                           {"pipe", &result.stages},
                                           {"tensor", &result.tensor},
                                           {"expert", &result.expert}};
    if (!axes.contains(axis) || !given.insert(axis).second || !size || *size < 1
        || *size > 65'536 || *size != std::floor(*size))
      return problem{
        "--mesh '" + part
        + "': write data=2,pipe=4,tensor=2,expert=2, each axis once and at least 1"};
    *axes.at(axis) = static_cast<int>(*size);
  }
  return result;
}

namespace {

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
  if (o.names_exchange && mesh->data == 1)
    return problem{
      "--exchange is between data replicas: say --mesh data=2 or more too"};
  if (o.microbatches % mesh->data != 0)
    return problem{std::to_string(o.microbatches) + " microbatches cannot be shared by "
                   + std::to_string(mesh->data)
                   + " data replicas: --microbatches must be a multiple of them"};
  constexpr std::int64_t most_ranks = 1 << 20;
  if (const auto many = std::int64_t{mesh->data} * mesh->tensor;
      many > 1 && many * mesh->stages > most_ranks)
    return problem{"--mesh: at most 1,048,576 ranks in all"};
  if (o.sequence_parallel && mesh->tensor == 1)
    return problem{"--sequence-parallel shares sequences out among tensor shards: say "
                   "--mesh tensor=2 or more too"};
  run_plan plan;
  plan.dims = {mesh->stages, o.microbatches / mesh->data, steps};
  plan.data = mesh->data;
  plan.tensor = mesh->tensor;
  plan.expert = mesh->expert;
  plan.sequence_parallel = o.sequence_parallel;
  plan.exchange = *exchange;
  return plan;
}

} // namespace

tl::expected<setup, std::string> set_up_simulation(const options& o) {
  auto plan = plan_of(o, o.steps);
  if (!plan)
    return problem{plan.error()};
  const auto cost = parse_costs(o.cost, plan->dims.stages);
  if (!cost)
    return problem{cost.error()};
  if (auto wrong = wrong_slowdowns(*cost, *plan); !wrong.empty())
    return problem{wrong};
  const auto machines = parse_machines(o.machines, cost->link, plan->ranks());
  if (!machines)
    return problem{machines.error()};
  plan->machines = *machines;
  plan->sizes = cost->sizes;
  if (auto wrong = outlasts_clock(*cost, *plan); !wrong.empty())
    return problem{wrong};
  plan->slowdowns = cost->slowdowns;
  plan->clock = clock_kind::virtual_time;
  plan->cost = costs_from(cost->actions, plan->tensor, plan->state_share_of({}).count);
  return with_requests({}, o, *plan);
}

namespace {

/// What --gate says, and what goes before it.
tl::expected<expert_options, std::string> experts_of(const options& o) {
  if (o.model != "moe" && o.names_experts)
    return problem{"only the model moe has experts: say --model moe, or nothing of "
                   "experts and their gate"};
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
  auto whole = make_network<float>(result.model);
  if (!whole)
    return problem{whole.error()};
  auto data = open_data(o.data, result.model, o.seed);
  if (!data)
    return problem{data.error()};
  result.data = (*data)->description();
  result.loss_floor = (*data)->loss_floor();
  result.evaluates_training_data = (*data)->evaluates_training_data();
  auto optimizer = base_optimizer(o);
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
  if (auto wrong = wrong_slowdowns(*cost, *plan); !wrong.empty())
    return problem{wrong};
  const auto machines = parse_machines(o.machines, cost->link, plan->ranks());
  if (!machines)
    return problem{machines.error()};
  plan->machines = *machines;
  plan->sizes = cost->sizes;
  if (auto wrong = outlasts_clock(*cost, *plan); !o.cost.empty() && !wrong.empty())
    return problem{wrong};
  plan->slowdowns = cost->slowdowns;
  plan->clock = *clock;
  plan->cost = o.cost.empty() ? costs_by_operations()
                              : costs_from(cost->actions, plan->tensor,
                                           plan->state_share_of({}).count);
  plan->threads = std::max(threads, 1);
  if (o.evaluate_samples > 0 && plan->work->data->evaluation_size() > 0)
    plan->evaluate_every = o.evaluate_every;
  plan->bytes_beside = [](const run_plan& p) {
    return evaluator::bytes(p.work->whole, evaluation_batch(p), p.threads);
  };
  plan->stall_timeout =
    std::chrono::milliseconds{static_cast<std::int64_t>(o.stall_timeout * 1000)};
  return with_requests(std::move(result), o, *plan);
}

} // namespace troupe
