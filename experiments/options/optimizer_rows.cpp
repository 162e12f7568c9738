// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/optimizer_options.hpp"
#include "experiments/options/option_row.hpp"
#include "experiments/options/parsing.hpp"
#include "models/short_text.hpp"

namespace troupe {

namespace {

std::optional<double> read_beta(std::string_view text) {
  const auto value = number(text);
  return value && *value < 1 ? value : std::nullopt;
}

/// Reads the largest norm of a gradient. Returns one sentence about a mistake, else an
/// empty text.
/// \param typed the option or key before `text`
/// \param allowed a norm, and what else is allowed
std::string read_clip(const char* typed, const std::string& text, const char* allowed,
                      double& to) {
  const auto value = number(text);
  to = value.value_or(0);
  return value ? "" : typed + text + ": write " + allowed;
}

template <bool optimizer_rule::*Reads>
bool reads(run_view run) {
  return rule_of(run.optimizer).*Reads;
}

/// "adamw 0.001, sgd 0.1."
template <double optimizer_rule::*Usual>
std::string usual_values() {
  std::string result;
  for (const auto& rule : optimizer_catalog())
    result += (result.empty() ? "" : ", ") + std::string{rule.name} + ' '
              + short_text(rule.*Usual);
  return result + ".";
}

/// A line for each optimizer, and one for each parameter.
std::string optimizer_lines() {
  std::string result;
  for (const auto& rule : optimizer_catalog()) {
    result += "\n" + std::string{rule.name} + "\t" + std::string{rule.summary};
    for (const auto& p : rule.parameters)
      result += "\n" + std::string{rule.name} + ":" + std::string{p.name} + "="
                + short_text(p.initial) + "\t" + std::string{p.meaning};
  }
  return result;
}

std::string recorded_rates(run_view run) {
  return text_of(run.optimizer.schedule);
}

std::string recorded_betas(run_view run) {
  return record_text(run.optimizer.beta1) + "," + record_text(run.optimizer.beta2);
}

} // namespace

option_rows optimizer_rows() {
  constexpr auto group = &typed_options::optimizer;
  using enum recorded_in;
  using typed = typed_optimizer;
  using value = optimizer_options;
  return under(
    "Optimizer", programs::computes,
    {row<group, &typed::name>(
       "--optimizer",
       "Optimizer. Numbers of its own follow the name: nadam:momentum_decay=0.01.",
       {.record = {checkpoints, [](run_view r) { return text_of(r.optimizer); }},
        .list = optimizer_lines}),
     row<group, &typed::rate>("--lr", "Learning rate. Default: ",
                              {.record = {checkpoints, of_optimizer<&value::rate>},
                               .changeable = true,
                               .list = usual_values<&optimizer_rule::usual_rate>}),
     row<group, &typed::rate_schedule>(
       "--lr-schedule",
       "Learning rate over the run, for example cosine,warmup=1000,floor=0.1.\n"
       "constant\tthe same rate throughout\n"
       "cosine\ta fall along half a cosine, to 0 or to floor=\n"
       "warmup=SAMPLES\tlinear rise over the first SAMPLES samples, before constant or "
       "cosine\n"
       "floor=FRACTION\trate at the end of a cosine, as a fraction of --lr",
       {.record = {checkpoints, recorded_rates}, .changeable = true}),
     row<group, &typed::momentum>(
       "--momentum", "Momentum of sgd.",
       {.effect = {reads<&optimizer_rule::reads_momentum>,
                   applies_to<&optimizer_rule::reads_momentum>()},
        .record = {checkpoints, of_optimizer<&value::momentum>},
        .changeable = true}),
     row<group, &typed::betas>("--betas",
                               "Two numbers with a comma: decay of the average of "
                               "gradients, and of squared gradients.",
                               {.effect = {reads<&optimizer_rule::reads_betas>,
                                           applies_to<&optimizer_rule::reads_betas>()},
                                .record = {checkpoints, recorded_betas},
                                .changeable = true}),
     row<group, &typed::epsilon>(
       "--eps", "Number that the optimizer adds to a divisor.",
       {.effect = {reads<&optimizer_rule::reads_epsilon>,
                   applies_to<&optimizer_rule::reads_epsilon>()},
        .record = {checkpoints, of_optimizer<&value::epsilon>},
        .changeable = true}),
     row<group, &typed::weight_decay>(
       "--weight-decay", "Weight decay. Default: ",
       {.record = {checkpoints, of_optimizer<&value::weight_decay>},
        .changeable = true,
        .list = usual_values<&optimizer_rule::usual_decay>}),
     row<group, &typed::decay>(
       "--decay",
       "Parameters with weight decay: all, or matrices, which leaves out biases and "
       "norms.",
       {.effect = {[](run_view r) { return r.optimizer.weight_decay != 0; },
                   "has no effect, as --weight-decay is 0: give --weight-decay above "
                   "0, or leave % out"},
        .record = {checkpoints,
                   [](run_view r) {
                     return std::string{r.optimizer.decay_only_matrices ? "matrices"
                                                                        : "all"};
                   },
                   every_run},
        .changeable = true}),
     row<group, &typed::clip>(
       "--clip",
       "Largest norm of the gradient of all stages together. Value 0: no clipping. "
       "With --schedule NAME:clip=stage each stage clips its own gradient to this "
       "norm.",
       {.record = {checkpoints, of_optimizer<&value::clip>}, .changeable = true})});
}

tl::expected<optimizer_options, std::string> parse(const typed_optimizer& typed) {
  const auto name = typed.name.substr(0, typed.name.find(':'));
  if (find_optimizer(name) == nullptr)
    return problem{unknown_name("optimizer", name, optimizer_names())};
  auto chosen = parse_optimizer(typed.name);
  if (!chosen)
    return problem{"--optimizer " + chosen.error()};
  auto& result = *chosen;
  result.rate = typed.rate.value_or(result.rate);
  result.weight_decay = typed.weight_decay.value_or(result.weight_decay);
  result.momentum = typed.momentum;
  result.epsilon = typed.epsilon;
  const auto betas = split(typed.betas, ',');
  const auto beta1 = betas.size() == 2 ? read_beta(betas[0]) : std::nullopt;
  const auto beta2 = betas.size() == 2 ? read_beta(betas[1]) : std::nullopt;
  if (!beta1 || !beta2)
    return problem{"--betas " + typed.betas
                   + ": write two numbers from 0 to below 1, for example 0.9,0.999"};
  result.beta1 = *beta1;
  result.beta2 = *beta2;
  if (typed.decay != "all" && typed.decay != "matrices")
    return problem{"--decay " + typed.decay + ": write all or matrices"};
  result.decay_only_matrices = typed.decay == "matrices";
  const auto rates = rate_schedule::parse(typed.rate_schedule);
  if (!rates)
    return problem{rates.error()};
  result.schedule = *rates;
  if (auto error = read_clip("--clip ", typed.clip,
                             "a norm above 0, or 0 for no clipping", result.clip);
      !error.empty())
    return problem{error};
  if (auto error = validation_error(result); !error.empty())
    return problem{"--" + error};
  return result;
}

tl::expected<optimizer_options, std::string>
optimizer_of_run(optimizer_options of_all, std::map<std::string, std::string>& values) {
  const struct {
    const char* key;
    double* target;
    std::optional<double> (*read)(std::string_view);
    const char* allowed;
  } numbers[] = {
    {"lr", &of_all.rate, number, "of at least 0"},
    {"momentum", &of_all.momentum, number, "of at least 0"},
    {"eps", &of_all.epsilon, number, "of at least 0"},
    {"weight_decay", &of_all.weight_decay, number, "of at least 0"},
    {"beta1", &of_all.beta1, read_beta, "from 0 to below 1"},
    {"beta2", &of_all.beta2, read_beta, "from 0 to below 1"},
  };
  for (const auto& [key, target, read, allowed] : numbers)
    if (const auto entry = values.extract(key)) {
      const auto value = read(entry.mapped());
      if (!value)
        return problem{std::string{key} + "=" + entry.mapped() + ": write a number "
                       + allowed};
      *target = *value;
    }
  if (const auto clip = values.extract("clip")) {
    if (clip.mapped() == "stage")
      of_all.scope = clip_scope::stage;
    else if (auto error =
               read_clip("clip=", clip.mapped(),
                         "stage, a norm above 0, or 0 for no clipping", of_all.clip);
             !error.empty())
      return problem{error};
  }
  if (auto error = validation_error(of_all); !error.empty())
    return problem{error};
  return of_all;
}

} // namespace troupe
