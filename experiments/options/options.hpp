// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/checkpoint_options.hpp"
#include "experiments/options/bench_options.hpp"
#include "experiments/options/collective_options.hpp"
#include "experiments/options/cost_options.hpp"
#include "experiments/options/data_options.hpp"
#include "experiments/options/inference_options.hpp"
#include "experiments/options/machine_options.hpp"
#include "experiments/options/mesh_options.hpp"
#include "experiments/options/model_options.hpp"
#include "experiments/options/node_options.hpp"
#include "experiments/options/optimizer_options.hpp"
#include "experiments/options/output_options.hpp"
#include "experiments/options/own_parts.hpp"
#include "experiments/options/run_options.hpp"
#include "experiments/options/schedule_options.hpp"
#include "experiments/options/study_options.hpp"

#include <tl/expected.hpp>

#include <string>
#include <vector>

namespace troupe {

class option_list;

/// Options as typed on the command line or in a file, with the defaults of each group.
struct typed_options {
  typed_model model;
  data_options data;
  typed_mesh mesh;
  typed_schedules schedules;
  typed_optimizer optimizer;
  typed_run run;
  std::string cost;
  std::string machines;
  evaluation_options evaluation;
  checkpoint_options checkpoint;
  typed_nodes nodes;
  typed_collectives collectives;
  inference_options inference;
  std::string comparison;
  std::string parts;
  typed_study study;
  output_options output;
};

/// The values of all options, each parsed once. Options that a program does not have
/// keep their defaults. Another process can set up the same run from the text of
/// options_text.hpp.
struct options {
  bool trains; ///< Runs compute; false: runs are simulated.
  model_options model;
  data_options data;
  mesh_options mesh;
  schedule_options schedules;
  optimizer_options optimizer; ///< Default optimizer, which schedules may change.
  run_options run;
  cost_options cost;
  machine_options machines;
  evaluation_options evaluation;
  checkpoint_options checkpoint;
  node_options nodes;
  collective_options collectives;
  inference_options inference;
  comparison_options comparison;
  std::vector<std::string> parts; ///< Names of the parts of bench to measure.
  output_options output;
  own_parts own = {}; ///< Set by a program, not by options.
};

/// A program: the name, the options that the program has, and their defaults.
struct program_info {
  std::string name;
  std::string description;
  /// Computes with a model; false: simulates runs, or runs collectives. If true, a
  /// program that runs schedules also has the options of model, data and optimizer.
  bool trains = true;
  bool draws = false;         ///< Has --print and --export.
  bool has_all = false;       ///< Has --all.
  bool names_exchange = true; ///< Has --exchange, together with --mesh.
  /// Has --json, --report and --watch. With `trains` also --save, --save-precision,
  /// --tensorboard, --verify and the options of evaluations. With `distributes` also
  /// --restart and --keep-steps.
  bool keeps = true;
  /// Chooses schedules, mesh, steps and clock itself. Has --json, --parts, --beside and
  /// --choose.
  bool measures = false;
  bool tells = false; ///< Has --json, but no other option of `keeps`.
  /// Runs collectives and nothing else: has --ranks, --bytes and similar options.
  bool exchanges = false;
  bool resumes = false;     ///< Has --checkpoint and --resume.
  bool distributes = false; ///< Has --nodes.
  bool studies = false;     ///< Repeats another program: has --vary, but no --json.
  bool evaluates = false; ///< Evaluates saved weights and nothing else: has --weights.
  /// Generates text from saved weights and nothing else: has --weights.
  bool writes = false;
  typed_options defaults = {};

  /// True if the program computes only forwards, of saved weights.
  bool infers() const { return evaluates || writes; }
  /// True if the program runs schedules.
  bool runs() const { return !exchanges && !infers(); }
};

/// Adds the options of a program. Returns the text at the end of --help-all; empty if
/// the program computes only forwards.
/// \param typed receives the texts when the command line is parsed; outlives `to`
std::string add_options(option_list& to, typed_options& typed,
                        const program_info& program);

/// One sentence about the first name in the value of --change that --change does not
/// accept; empty if all names are accepted.
std::string change_error(const std::string& change);

/// Parses all options, and reads the files of schedules and of --machines. The error is
/// one sentence about the first mistake, with the allowed values.
/// \param trains as in program_info
/// \pre find_checkpoints(typed.checkpoint) was called, if --resume is `auto`
tl::expected<options, std::string> parse(typed_options typed, bool trains);

} // namespace troupe
