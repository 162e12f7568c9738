#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// What users say on the command line or in a file, before it is looked at: defaults
/// here.
struct options {
  // what is trained
  std::string model = "gpt";
  std::optional<std::int64_t> layers;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t length = 64;
  std::int64_t words = 256;
  bool tied = false;
  std::string gate = "switch"; ///< A preset of what follows.
  int experts = 8;
  std::optional<int> top_k;
  std::optional<double> capacity;
  std::optional<double> balance;
  double gate_noise = 0;
  bool shared_expert = false;
  std::string data = "synthetic";
  std::optional<std::int64_t> batch;
  std::string init;
  std::uint64_t seed = 1;

  // how it is cut and scheduled
  std::vector<std::string> schedules;
  int stages = 4;
  std::string mesh; ///< "data=2,pipe=4"; pipe is stages.
  bool sequence_parallel = false;
  std::string exchange = "ring"; ///< Of gradients between data replicas.
  int microbatches = 8;
  int steps = 100;
  std::optional<double> epochs;
  std::string split;

  // what is exchanged
  std::vector<int> ranks = {8};
  std::optional<std::int64_t> values; ///< Of each rank's array.
  std::optional<std::int64_t> bytes;  ///< The same.
  double latency = 0.01;              ///< milliseconds
  double bandwidth = 1e10;            ///< bytes a second; 0: bytes take no time
  std::vector<std::string> operations;
  std::vector<std::string> algorithms;

  // how it learns
  std::string optimizer = "adamw";
  std::optional<double> rate;
  std::string rate_schedule = "constant";
  double momentum = 0;
  std::string betas = "0.9,0.999";
  double epsilon = 1e-8;
  std::optional<double> weight_decay;
  std::string decay = "all";
  std::string clip = "0";
  bool clips_stages = false; ///< A schedule's own clip=stage: a norm for each stage.

  // where and when it runs
  std::string clock;
  int threads = 0; ///< 0: the machine's cores.
  std::string cost;
  std::string machines;      ///< What stands on one, and the links between them.
  double stall_timeout = 10; ///< seconds

  // what is told
  int evaluate_every = 0;
  std::int64_t evaluate_samples = 1000;
  std::string save;
  std::string json;
  std::string report;
  /// Without a report: what the name of a new folder for one begins with, as
  /// runs/compare. Empty: there is no report then.
  std::string new_report;
  bool quiet = false;
  bool print = false; ///< simulate: draw timelines
  bool all = false;   ///< verify: the whole catalog

  std::string config;               ///< The file that gave some of these.
  std::vector<std::string> command; ///< As it was typed, the program by its bare name.

  /// Whether results go to standard output, and everything else to standard error.
  bool results_on_stdout() const { return json == "-"; }
};

/// What a program does with options.
struct program_about {
  std::string name;
  std::string description;
  bool trains = true;         ///< Has a model, data and an optimizer.
  bool draws = false;         ///< Has --print.
  bool has_all = false;       ///< Has --all.
  bool names_exchange = true; ///< Has --exchange, if it has --mesh.
  bool keeps = true;          ///< Has --save, --evaluate-every and --report.
  bool measures = false;      ///< Chooses schedules, stages and steps itself.
  bool tells = false;         ///< Has --json, though it keeps nothing else.
  /// Runs collectives and nothing else: has --ranks, --bytes and the like.
  bool exchanges = false;
  options defaults = {};
};

class option_list;

/// Adds the options of a program, whose values go to `o`; returns what --help ends
/// with.
std::string add_options(option_list& app, options& o, const program_about& about);

} // namespace troupe
