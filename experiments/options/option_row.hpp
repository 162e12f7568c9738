// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// An option is a row: its name, the typed member, and all rules about the option. A
// group has its values in GROUP_options.hpp, and its rows and parser in GROUP_rows.cpp.
// option_catalog.hpp joins the groups.

#include "experiments/options/option_list.hpp"
#include "experiments/options/options.hpp"
#include "plan/run_plan.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe {

/// A run as options describe it.
struct run_view {
  const options& o;
  const optimizer_options& optimizer; ///< The run's optimizer.
  const run_plan* training = nullptr; ///< Plan of a training; null: not known yet.
};
using run_condition = bool (*)(run_view);

/// The end of a sentence about an option without effect, with the option's name in
/// place of '%'.
std::string with_name(std::string_view text, std::string_view option);

inline bool every_run(run_view) {
  return true;
}

/// The runs in which an option has an effect, by default all.
struct effect_rule {
  run_condition condition = every_run;
  /// End of the sentence about an option without effect. '%' is the option's name.
  std::string_view otherwise = {};
};

/// Files that record an option. Each kind includes the kinds before it.
enum class recorded_in {
  nothing,
  checkpoints, ///< A checkpoint records the value, and --resume sets the option.
  weights,     ///< A file of --save records the value, and --weights sets the option.
  init,        ///< --init sets the option too.
  network,     ///< A typed option that contradicts a file of weights is refused.
};

/// The value of an option in files.
struct record_rule {
  recorded_in files = recorded_in::nothing;
  /// The value as text. `training` is null only if a file of weights is written.
  std::string (*value)(run_view) = nullptr;
  /// The runs whose files have the value; null: runs in which the option has an effect.
  run_condition condition = nullptr;
};

/// Rules about an option.
struct option_rules {
  bool (*has)(const program_info&) = nullptr; ///< Programs; null: those of the group.
  effect_rule effect = {};
  record_rule record = {};
  bool changeable = false; ///< --change may name the option.
  bool commas = false;     ///< Values may be separated by commas.
  /// Form of a value that may be left out: "[PORT]". Empty: the value is required.
  std::string_view optional_value = {};
  std::string (*list)() = nullptr; ///< End of the help text; null: none.
};

/// An option of programs: the row of the catalog.
struct option_row {
  std::string names; ///< "--schedules,--schedule"
  std::string help;  ///< Form: help.hpp.
  option_rules rules;
  /// Adds the option, whose values go to a member of `typed`.
  CLI::Option* (*add)(option_list& to, const option_row& row, typed_options& typed);
  bool (*differs)(const typed_options& a, const typed_options& b);
  std::string heading = {}; ///< Heading in --help-all.

  /// "--schedules"
  std::string name() const { return names.substr(0, names.find(',')); }
  /// The name in files: "--expert-top-k" of "--top-k,--expert-top-k".
  std::string recorded_name() const { return names.substr(names.rfind(',') + 1); }
};

using option_rows = std::vector<option_row>;

/// A row whose values go to a member of typed_options: row<&typed_options::mesh,
/// &typed_mesh::stages>. A bool is a flag. An optional text may have several lines.
template <auto... Path>
option_row row(std::string names, std::string help, option_rules rules = {}) {
  const auto add = [](option_list& to, const option_row& row, typed_options& typed) {
    auto& target = (typed.*....*Path);
    using value_type = std::remove_reference_t<decltype(target)>;
    const auto text = row.help + (row.rules.list != nullptr ? row.rules.list() : "");
    if constexpr (std::is_same_v<value_type, bool>)
      return to.add_flag(row.names, target, text);
    else if constexpr (std::is_same_v<value_type, std::optional<std::string>>)
      return to.add_text(row.names, target, text);
    else {
      if constexpr (std::is_same_v<value_type, std::string>)
        if (const std::string form{row.rules.optional_value}; !form.empty())
          return to.add_switch(row.names, target, form, text);
      auto* const added = to.add_option(row.names, target, text);
      return row.rules.commas ? added->delimiter(',') : added;
    }
  };
  const auto differs = [](const typed_options& a, const typed_options& b) {
    return (a.*....*Path) != (b.*....*Path);
  };
  return {std::move(names), std::move(help), rules, add, differs};
}

/// Rows under a heading. `has` is for the rows without programs of their own.
option_rows under(const std::string& heading, bool (*has)(const program_info&),
                  option_rows rows);

option_rows joined(option_rows first, option_rows last);

/// The value of an option in a file.
std::string record_text(double value);
inline std::string record_text(std::string value) {
  return value;
}
template <std::integral Integer>
std::string record_text(Integer value) {
  if constexpr (std::is_same_v<Integer, bool>)
    return value ? "true" : "false";
  else
    return std::to_string(value);
}

/// The text of a value: value_of<&options::data, &data_options::seed>.
template <auto... Path>
std::string value_of(run_view run) {
  return record_text((run.o.*....*Path));
}

/// The text of a value of the run's optimizer.
template <auto Member>
std::string of_optimizer(run_view run) {
  return record_text(run.optimizer.*Member);
}

// Conditions on programs.
namespace programs {

inline bool all(const program_info&) {
  return true;
}
inline bool computes(const program_info& p) {
  return p.trains;
}
inline bool learns(const program_info& p) {
  return p.trains && p.runs();
}
inline bool keeps_training(const program_info& p) {
  return learns(p) && p.keeps;
}
inline bool evaluates(const program_info& p) {
  return p.evaluates;
}
inline bool writes(const program_info& p) {
  return p.writes;
}
inline bool measures(const program_info& p) {
  return p.measures;
}
inline bool without_measurements(const program_info& p) {
  return !p.measures;
}

} // namespace programs

// The rows of each group, in the order of --help-all.

option_rows model_rows();
option_rows expert_rows();
option_rows data_rows();
option_rows schedule_rows();
option_rows mesh_rows();
option_rows optimizer_rows();
option_rows output_rows();
option_rows evaluation_rows();
option_rows checkpoint_rows();
option_rows run_rows();
option_rows cost_rows();
option_rows machine_rows();
option_rows node_rows();
option_rows bench_rows();
option_rows study_rows();
option_rows collective_rows();
option_rows weights_rows();
option_rows text_rows();

} // namespace troupe
