// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/mesh_options.hpp"
#include "experiments/options/optimizer_options.hpp"
#include "models/batching.hpp"
#include "schedules/files/schedule_file.hpp"
#include "schedules/schedule.hpp"

#include <tl/expected.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// Options of the schedules and of the length of runs, as typed by the user.
struct typed_schedules {
  std::vector<std::string> names = {"all"}; ///< An entry may name several: "gpipe,2bw".
  int microbatches = 8;
  int steps = 100;
  std::optional<double> epochs;
  std::string sizes; ///< Samples of each microbatch: "4,4,2,2".
  /// Tokens of the samples of each microbatch, in rotation: "64,32".
  std::string lengths;
  /// True if `microbatches` was typed, or set from a schedule's file; false: the
  /// default.
  bool says_microbatches = false;
  /// True if `steps` was typed, or set from a schedule's file; false: the default.
  bool says_steps = false;
  /// Contents of schedules without a file, by the PATH of "file:PATH". No option sets
  /// them.
  std::map<std::string, std::string> texts = {};

  /// The content that stands for the file in `text`; null: the file is read.
  const std::string* text_of(const std::string& text) const;
};

/// Sets the ranks of a pipeline and microbatches to the sizes of schedules in files,
/// and steps if such a schedule has no flush. The sizes then count as typed. Changes
/// nothing without schedules in files. Returns one sentence about a wrong file or a
/// wrong --mesh, or about sizes that contradict each other or typed sizes. Else returns
/// an empty text.
std::string set_sizes_from_files(typed_schedules& to, typed_mesh& mesh);

/// A schedule that a user names: "ampnet:max_active_keys=8,lr=0.01".
struct chosen_schedule {
  std::string text; ///< The schedule as typed.
  bool of_all;      ///< True if named by `all`: left out if the schedule does not fit.
  std::string name;
  /// Parameters as typed, including parameters of the optimizer.
  std::map<std::string, std::string> values;
  schedule sch;
  optimizer_options optimizer; ///< The optimizer of this schedule's run.
  std::string file = {};       ///< Content of the schedule's file; empty: no file.
  /// The only sizes that a file allows; absent: no file.
  std::optional<shape> sizes = {};
};

/// True if the schedule is zb-auto with measured=on: the times of f, i and w are
/// measured before the run.
bool measures_times(const chosen_schedule& chosen);

struct schedule_options {
  std::vector<chosen_schedule> chosen;
  int microbatches; ///< Microbatches of a batch, of all data replicas.
  int steps; ///< Steps of the training, including the steps of a resumed checkpoint.
  std::optional<double> epochs; ///< Passes over the data, in place of `steps`.
  uneven_microbatches uneven = {};
};

/// Parses one schedule. The error is one sentence with the mistake.
/// \param of_all the value of `chosen_schedule::of_all`
/// \param default_optimizer optimizer of all runs; null: a schedule has no optimizer
/// \param file content of the file that the text names; null: the file is read
tl::expected<chosen_schedule, std::string>
parse_schedule(const std::string& text, bool of_all,
               const optimizer_options* default_optimizer,
               const std::string* file = nullptr);

/// Parses and checks the typed options. `all` stands for the schedules of the catalog,
/// except schedules that another entry names without parameters. The error is one
/// sentence with the mistake and the allowed values.
/// \param default_optimizer as for parse_schedule
tl::expected<schedule_options, std::string>
parse(const typed_schedules& typed, const mesh_options& mesh,
      const optimizer_options* default_optimizer);

/// Splits "gpipe,ampnet:max_active_keys=8,lr=0.01,2bw" into texts of single schedules.
/// A comma begins a new schedule unless a parameter (key=value) follows. Without names
/// one empty text.
std::vector<std::string> single_schedules(const std::vector<std::string>& names);

/// True if the text of a schedule names a file: "file:my.csv,weights=stash".
bool names_file(const std::string& text);

/// The path in the text of a schedule that names a file, up to the first comma.
/// \pre names_file(text)
std::string path_of_schedule(const std::string& text);

/// Reads the text of a schedule file of at most 256 MiB. The error is one sentence.
tl::expected<std::string, std::string> read_schedule_file(const std::string& path);

/// Parses the text of a schedule file. The error is one sentence.
/// \param path path of the file, which is not read; the file's name becomes a part of
/// the schedule's name
/// \param values the parameters after the path
tl::expected<filed_schedule, std::string>
schedule_in(const std::string& path, const std::string& text,
            const std::map<std::string, std::string>& values);

} // namespace troupe
