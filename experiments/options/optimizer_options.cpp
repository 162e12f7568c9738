#include "experiments/options/optimizer_options.hpp"

#include "experiments/options/parsing.hpp"

#include <cmath>

namespace troupe {

namespace {

/// What is out of range, and what the range is.
std::string out_of_range(const optimizer_options& o) {
  for (const auto& [name, value] : {std::pair{"lr", o.rate},
                                    {"weight decay", o.weight_decay},
                                    {"momentum", o.momentum},
                                    {"eps", o.epsilon}})
    if (!std::isfinite(value) || value < 0)
      return std::string{name} + " is a number of at least 0";
  if (o.momentum >= 1)
    return "momentum is below 1";
  if (o.kind == optimizer_kind::adamw && static_cast<float>(o.epsilon) == 0)
    return "eps of adamw is at least 1e-45: with less, a gradient of 0 is divided by 0";
  return {};
}

} // namespace

double weight_decay_of(const options& o) {
  return o.weight_decay.value_or(o.optimizer == "sgd" ? 0.0 : 0.01);
}

tl::expected<optimizer_options, std::string> optimizer_from(const options& o) {
  optimizer_options result;
  if (o.optimizer != "sgd" && o.optimizer != "adamw")
    return problem{"there is no optimizer '" + o.optimizer
                   + "'; there are sgd and adamw"};
  const bool sgd = o.optimizer == "sgd";
  result.kind = sgd ? optimizer_kind::sgd : optimizer_kind::adamw;
  result.rate = o.rate.value_or(sgd ? 0.1 : 1e-3);
  result.weight_decay = weight_decay_of(o);
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
  if (o.clips_stages && result.clip == 0)
    return problem{"clip=stage needs a norm: say --clip too"};
  result.scope = o.clips_stages ? clip_scope::stage : clip_scope::network;
  if (auto wrong = out_of_range(result); !wrong.empty())
    return problem{wrong};
  return result;
}

} // namespace troupe
