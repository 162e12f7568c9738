// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/effects.hpp"

#include "experiments/options/option_catalog.hpp"

#include <algorithm>
#include <string_view>

namespace troupe {

namespace {

/// A schedule's key that only some optimizers read; the others ignore it.
struct optimizer_key {
  std::string_view key;
  double optimizer_options::*member;
  bool optimizer_rule::*reads;
  std::string_view (*belongs)();
};

constexpr optimizer_key optimizer_keys[] = {
  {"momentum", &optimizer_options::momentum, &optimizer_rule::reads_momentum,
   applies_to<&optimizer_rule::reads_momentum>},
  {"beta1", &optimizer_options::beta1, &optimizer_rule::reads_betas,
   applies_to<&optimizer_rule::reads_betas>},
  {"beta2", &optimizer_options::beta2, &optimizer_rule::reads_betas,
   applies_to<&optimizer_rule::reads_betas>},
  {"eps", &optimizer_options::epsilon, &optimizer_rule::reads_epsilon,
   applies_to<&optimizer_rule::reads_epsilon>},
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

/// True if the schedule has a value with the option's name, as momentum=0.9 for
/// "--momentum". For "--betas" the schedule must have beta1 and beta2. The value
/// `stage`, as in clip=stage, replaces no option.
bool replaces(const chosen_schedule& chosen, std::string_view option) {
  if (option == "--betas")
    return chosen.values.contains("beta1") && chosen.values.contains("beta2");
  return std::ranges::any_of(chosen.values, [&](const auto& value) {
    return option_of(value.first) == option && value.second != "stage";
  });
}

/// One sentence about an option of all runs without effect, else an empty text.
std::string effect_error(const option_row& row, const options& o) {
  const auto name = row.name();
  const auto matters_in = [&](const chosen_schedule& run) {
    return row.rules.effect.condition({o, run.optimizer});
  };
  if (std::ranges::none_of(o.schedules.chosen, matters_in))
    return name + " " + with_name(row.rules.effect.otherwise, name);
  if (std::ranges::all_of(o.schedules.chosen, [&](const chosen_schedule& run) {
        return replaces(run, name);
      }))
    return name + " has no effect, as every schedule has a value of its own: leave "
           + name + " out, or the values in --schedule";
  return {};
}

/// One sentence about a schedule's momentum, beta1, beta2 or eps that the optimizer of
/// the schedule's run ignores, unless the value is the default. Also about f, i or w of
/// zb-auto beside measured=on. Empty if there is no such value.
std::string effect_error(const chosen_schedule& chosen) {
  const optimizer_options usual;
  for (const auto& [key, member, reads, belongs] : optimizer_keys)
    if (const auto entry = chosen.values.find(std::string{key});
        entry != chosen.values.end() && !(rule_of(chosen.optimizer).*reads)
        && chosen.optimizer.*member != usual.*member)
      return chosen.name + ":" + entry->first + "=" + entry->second + " "
             + with_name(belongs(), entry->first + "=");
  return measured_in_place(chosen);
}

} // namespace

std::string without_effect(const typed_options& typed, const options& o,
                           const program_info& program) {
  for (const auto& row : all_rows())
    if (row.rules.has(program) && row.differs(typed, program.defaults))
      if (auto error = effect_error(row, o); !error.empty())
        return error;
  for (const auto& chosen : o.schedules.chosen)
    if (auto error = effect_error(chosen); !error.empty())
      return error;
  return cost_without_effect(o);
}

} // namespace troupe
