// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/mesh_options.hpp"
#include "experiments/options/optimizer_options.hpp"
#include "models/batching.hpp"
#include "schedules/schedule.hpp"

#include <tl/expected.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

class option_list;

/// Options of the schedules and of how long runs are, as a user types them.
struct typed_schedules {
  std::vector<std::string> names = {"all"}; ///< Each may be several: "gpipe,2bw".
  int microbatches = 8;
  int steps = 100;
  std::optional<double> epochs;
  std::string sizes;              ///< Samples of each microbatch: "4,4,2,2".
  std::string lengths;            ///< Tokens of their samples: "64,32".
  bool says_microbatches = false; ///< They are typed, and not the usual number,
  bool says_steps = false;        ///< likewise.
};

/// The sizes of schedules that stand in files, where none are typed. Returns what is
/// wrong with a file, if anything.
std::string take_sizes_of_files(typed_schedules& to, typed_mesh& mesh);

/// A schedule that a user names: "ampnet:max_active_keys=8,lr=0.01".
struct chosen_schedule {
  std::string text; ///< As typed.
  bool of_all;      ///< Named by `all`: it is left out where it does not fit.
  std::string name;
  std::map<std::string, std::string> values; ///< As typed, its optimizer's among them.
  schedule sch;
  optimizer_options optimizer;     ///< Of its run.
  std::string file = {};           ///< What stands in its file, if it has one,
  std::optional<shape> sizes = {}; ///< and the only sizes that it has then.
};

struct schedule_options {
  std::vector<chosen_schedule> chosen;
  int microbatches; ///< Of all data replicas.
  int steps;
  std::optional<double> epochs; ///< In place of `steps`.
  uneven_microbatches uneven = {};
};

/// \param trains whether there is an optimizer, and data that epochs go through
/// \param measures whether the program chooses schedules and steps itself
void add_schedules(option_list& to, typed_schedules& place, bool trains, bool measures);

/// One schedule from its text. On error says what can be written.
/// \param learns the optimizer of all runs; null: a schedule has none of its own
/// \param file what stands in the file that the text names; null: it is read
tl::expected<chosen_schedule, std::string>
parse_schedule(const std::string& text, bool of_all, const optimizer_options* learns,
               const std::string* file = nullptr);

/// Schedules, where `all` stands for those of the catalog that are not named by
/// themselves. On error says which text is wrong, and what can be written.
/// \param learns as above
tl::expected<schedule_options, std::string> parse(const typed_schedules& typed,
                                                  const mesh_options& mesh,
                                                  const optimizer_options* learns);

} // namespace troupe
