// SPDX-License-Identifier: BSD-3-Clause
#include "models/optimizer_catalog.hpp"

#include "models/short_text.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace troupe {

namespace {

/// The value of one of the optimizer's own parameters.
double value_of(const optimizer_options& options, std::string_view name) {
  const auto given = options.parameters.find(std::string{name});
  return given != options.parameters.end()
           ? given->second
           : std::ranges::find(rule_of(options).parameters, name,
                               &optimizer_parameter::name)
               ->initial;
}

std::vector<std::string_view> mean_and_square(const optimizer_options&) {
  return {"mean", "square"};
}

const std::vector<optimizer_rule>& rules() {
  static const std::vector<optimizer_rule> all{
    {.name = "adamw",
     .summary = "mean and root mean square of gradients, with decoupled decay",
     .usual_rate = 1e-3,
     .usual_decay = 0.01,
     .reads_betas = true,
     .reads_epsilon = true,
     .state = mean_and_square,
     .update = [](const optimizer_options& o, const update_step& s) -> value_update {
       return adamw_update::of(s.rate, o.beta1, o.beta2, o.epsilon, s.weight_decay,
                               s.number);
     }},
    {.name = "nadam",
     .summary = "adamw with Nesterov's momentum",
     .usual_rate = 2e-3,
     .usual_decay = 0,
     .reads_betas = true,
     .reads_epsilon = true,
     .parameters =
       {{"momentum_decay", 0.004, 0, 1000,
         "speed at which the momentum rises from half of beta1 to beta1; 0: it stays"}},
     .state = mean_and_square,
     .update = [](const optimizer_options& o, const update_step& s) -> value_update {
       return nadam_update::of(s.rate, o.beta1, o.beta2, o.epsilon, s.weight_decay,
                               value_of(o, "momentum_decay"), s.number);
     }},
    {.name = "sgd",
     .summary = "stochastic gradient descent, with --momentum if above 0",
     .usual_rate = 0.1,
     .usual_decay = 0,
     .reads_momentum = true,
     .state =
       [](const optimizer_options& o) {
         return o.momentum != 0 ? std::vector<std::string_view>{"velocity"}
                                : std::vector<std::string_view>{};
       },
     .update = [](const optimizer_options& o, const update_step& s) -> value_update {
       const auto rate = static_cast<float>(s.rate),
                  decay = static_cast<float>(s.weight_decay);
       if (o.momentum != 0)
         return momentum_update{rate, decay, static_cast<float>(o.momentum)};
       return sgd_update{rate, decay};
     }}};
  return all;
}

std::string names_of(const std::vector<optimizer_parameter>& parameters) {
  std::string result;
  for (const auto& p : parameters)
    result += (result.empty() ? "" : ", ") + std::string{p.name};
  return parameters.empty() ? "the optimizer has no parameters"
                            : "the parameters are " + result;
}

} // namespace

std::span<const optimizer_rule> optimizer_catalog() {
  return rules();
}

const optimizer_rule* find_optimizer(std::string_view name) {
  const auto match = std::ranges::find(rules(), name, &optimizer_rule::name);
  return match != rules().end() ? &*match : nullptr;
}

const optimizer_rule& rule_of(const optimizer_options& options) {
  return *find_optimizer(options.name);
}

std::vector<std::string> state_names(const optimizer_options& options) {
  const auto names = rule_of(options).state(options);
  return {names.begin(), names.end()};
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> result;
  for (const auto& rule : rules())
    result.emplace_back(rule.name);
  return result;
}

std::string selection_error(const optimizer_options& options) {
  if (find_optimizer(options.name) == nullptr) {
    std::string names;
    for (const auto& rule : rules())
      names += (names.empty() ? "" : ", ") + std::string{rule.name};
    return "there is no optimizer '" + options.name + "'; there are " + names;
  }
  for (const auto& [key, value] : options.parameters) {
    const auto& known = rule_of(options).parameters;
    const auto p = std::ranges::find(known, key, &optimizer_parameter::name);
    if (p == known.end())
      return options.name + " has no parameter '" + key + "'; " + names_of(known);
    if (!(value >= p->least && value <= p->most))
      return options.name + ":" + key + "=" + short_text(value)
             + ": write a number from " + short_text(p->least) + " to "
             + short_text(p->most);
  }
  return {};
}

tl::expected<optimizer_options, std::string> parse_optimizer(const std::string& text) {
  const auto colon = text.find(':');
  optimizer_options result{.name = text.substr(0, colon)};
  const auto* const rule = find_optimizer(result.name);
  if (rule == nullptr)
    return tl::unexpected{selection_error(result)};
  result.rate = rule->usual_rate;
  result.weight_decay = rule->usual_decay;
  if (colon != std::string::npos && (text.ends_with(':') || text.ends_with(',')))
    return tl::unexpected{text + " has no parameter behind '" + text.back() + "'; "
                          + names_of(rule->parameters)};
  std::stringstream parts{colon == std::string::npos ? "" : text.substr(colon + 1)};
  for (std::string part; std::getline(parts, part, ',');) {
    const auto equals = std::min(part.find('='), part.size());
    const auto key = part.substr(0, equals),
               number = part.substr(std::min(equals + 1, part.size()));
    double value = 0;
    const auto* const end = number.data() + number.size();
    const auto [stop, failed] = std::from_chars(number.data(), end, value);
    if (failed == std::errc::result_out_of_range && stop == end)
      value = HUGE_VAL; // no parameter allows it
    else if (failed != std::errc{} || stop != end)
      return tl::unexpected{result.name + ":" + part + ": write NAME=NUMBER; "
                            + names_of(rule->parameters)};
    if (!result.parameters.emplace(key, value).second)
      return tl::unexpected{result.name + " has " + key + "= twice: write it once"};
  }
  if (auto error = selection_error(result); !error.empty())
    return tl::unexpected{std::move(error)};
  return result;
}

std::string text_of(const optimizer_options& options) {
  std::string result = options.name;
  for (const auto& p : rule_of(options).parameters)
    if (const double value = value_of(options, p.name); value != p.initial)
      result += (result == options.name ? ":" : ",") + std::string{p.name} + "="
                + exact_text(value);
  return result;
}

std::string text_of(const rate_schedule& course) {
  return std::string{course.cosine ? "cosine" : "constant"}
         + (course.warmup > 0 ? ",warmup=" + std::to_string(course.warmup) : "")
         + (course.floor > 0 ? ",floor=" + exact_text(course.floor) : "");
}

} // namespace troupe
