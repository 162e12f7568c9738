#pragma once

#include "experiments/options/options.hpp"

#include <tl/expected.hpp>

#include <map>
#include <string>
#include <vector>

namespace troupe {

/// A schedule as a user names it: "ampnet:max_active_keys=8,lr=0.01".
struct schedule_text {
  std::string text; ///< As typed.
  std::string name;
  std::map<std::string, std::string> values;
  bool of_all = false; ///< Named by `all`: it may be left out.
};

/// The schedules that a user names. `all` stands for those of the catalog that are not
/// named by themselves. On error says which text is wrong, and what can be written.
tl::expected<std::vector<schedule_text>, std::string>
named_schedules(const std::vector<std::string>& texts);

/// Splits "gpipe,ampnet:max_active_keys=8,lr=0.01,2bw" into schedules: a comma begins a
/// new one unless a parameter (key=value) follows it.
std::vector<std::string> split_schedules(const std::string& text);

/// The options of one run: those of all runs, with what its schedule says of the
/// optimizer (lr, momentum, eps, weight_decay, beta1, beta2, clip) in their place.
/// Takes that out of the schedule's values. On error says what is wrong, and what is
/// allowed.
tl::expected<options, std::string>
with_own_options(options o, std::map<std::string, std::string>& values);

} // namespace troupe
