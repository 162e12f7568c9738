// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/own_effects.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// A schedule's key that only one kind of optimizer uses; the other optimizer ignores
/// it.
struct key_of_one {
  std::string_view key;
  double optimizer_options::*place;
  optimizer_kind kind;
  std::string_view belongs;
};

constexpr key_of_one keys_of_one[] = {
  {"momentum", &optimizer_options::momentum, optimizer_kind::sgd, of_sgd},
  {"beta1", &optimizer_options::beta1, optimizer_kind::adamw, of_adamw},
  {"beta2", &optimizer_options::beta2, optimizer_kind::adamw, of_adamw},
  {"eps", &optimizer_options::epsilon, optimizer_kind::adamw, of_adamw},
};

/// The option that a schedule's key replaces.
std::string option_of(std::string key) {
  std::ranges::replace(key, '_', '-');
  return "--" + key;
}

} // namespace

bool replaces(const chosen_schedule& one, std::string_view option) {
  if (option == "--betas")
    return one.values.contains("beta1") && one.values.contains("beta2");
  return std::ranges::any_of(one.values, [&](const auto& value) {
    return option_of(value.first) == option && value.second != "stage";
  });
}

std::string without_effect(const chosen_schedule& one) {
  const optimizer_options usual;
  for (const auto& [key, place, kind, belongs] : keys_of_one)
    if (const auto found = one.values.find(std::string{key});
        found != one.values.end() && one.optimizer.kind != kind
        && one.optimizer.*place != usual.*place)
      return one.name + ":" + found->first + "=" + found->second + ": " + found->first
             + " " + std::string{belongs};
  return {};
}

} // namespace troupe
