// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/own_effects.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// A schedule's key that only one kind of optimizer uses; the other optimizer ignores
/// it.
struct optimizer_key {
  std::string_view key;
  double optimizer_options::*member;
  optimizer_kind kind;
  std::string_view belongs;
};

constexpr optimizer_key optimizer_keys[] = {
  {"momentum", &optimizer_options::momentum, optimizer_kind::sgd, of_sgd},
  {"beta1", &optimizer_options::beta1, optimizer_kind::adamw, of_adamw},
  {"beta2", &optimizer_options::beta2, optimizer_kind::adamw, of_adamw},
  {"eps", &optimizer_options::epsilon, optimizer_kind::adamw, of_adamw},
};

/// One sentence about a time that zb-auto measures in place of the typed one, else an
/// empty text.
std::string measured_in_place(const chosen_schedule& chosen) {
  if (!measures_times(chosen))
    return {};
  for (const char* key : {"f", "i", "w"})
    if (const auto entry = chosen.values.find(key); entry != chosen.values.end())
      return chosen.name + ":" + entry->first + "=" + entry->second
             + " has no effect with measured=on, which measures f, i and w: leave "
             + entry->first + "= or measured=on out";
  return {};
}

/// The option that a schedule's key replaces.
std::string option_of(std::string key) {
  std::ranges::replace(key, '_', '-');
  return "--" + key;
}

} // namespace

std::string with_name(std::string_view text, std::string_view option) {
  std::string result{text};
  if (const auto mark = result.find('%'); mark != std::string::npos)
    result.replace(mark, 1, option);
  return result;
}

bool replaces(const chosen_schedule& chosen, std::string_view option) {
  if (option == "--betas")
    return chosen.values.contains("beta1") && chosen.values.contains("beta2");
  return std::ranges::any_of(chosen.values, [&](const auto& value) {
    return option_of(value.first) == option && value.second != "stage";
  });
}

std::string without_effect(const chosen_schedule& chosen) {
  const optimizer_options usual;
  for (const auto& [key, member, kind, belongs] : optimizer_keys)
    if (const auto entry = chosen.values.find(std::string{key});
        entry != chosen.values.end() && chosen.optimizer.kind != kind
        && chosen.optimizer.*member != usual.*member)
      return chosen.name + ":" + entry->first + "=" + entry->second + " "
             + with_name(belongs, entry->first + "=");
  return measured_in_place(chosen);
}

} // namespace troupe
