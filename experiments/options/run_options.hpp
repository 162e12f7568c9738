// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"
#include "kernels/bf16_block.hpp"

#include <tl/expected.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace troupe {

class option_list;

/// Options of clock and threads, as a user types them.
struct typed_run {
  std::string clock = "real";
  int threads = 0;
  std::string device = "cpu";
  std::string precision = "fp32";
  double stall_timeout = 10; ///< seconds
  bool on_nodes = false;     ///< Not typed here: --nodes are, which know their GPUs.
};

/// Where and when a run takes place.
struct run_options {
  clock_kind clock = clock_kind::real;
  precision products = precision::fp32;
  /// Of products of bf16 by the CPU.
  bf16_sums sums = bf16_sums::tiles;
  std::vector<processor> processors; ///< Of ranks, in turns; empty: the CPU.
  /// One by one, and each must have a rank; else all GPUs of a rank's machine.
  bool lists_processors = false;
  int threads = 0; ///< Of the CPU; 0: as many as the machine that runs it has cores.
  std::chrono::milliseconds stall_timeout{10'000};
};

/// Of a machine, by their numbers.
inline constexpr int most_gpus = 1024;

void add_threads(option_list& to, typed_run& place);
void add_device(option_list& to, typed_run& place);
void add_device_forwards(option_list& to, typed_run& place);

/// \param trains whether values are computed; else only what they weigh matters
void add_precision(option_list& to, typed_run& place, bool trains);
/// The same where nothing but forwards is computed.
void add_precision_forwards(option_list& to, typed_run& place);
void add_clock(option_list& to, typed_run& place);

/// Whether a CPU makes products of bf16 in ranks on these processors; empty: on the
/// CPU.
bool makes_bf16_by_cpu(precision products, const std::vector<processor>& of_ranks);

/// Whether a CPU makes products of bf16 in a run.
bool makes_bf16_by_cpu(const run_plan& plan);

/// A sentence about the speed of products, or about the choice of their path; usually
/// empty.
std::string warning_of(const run_options& o);

/// What --device says: "cpu", "cuda" (all GPUs of a machine), or a list as
/// "cuda:0,cuda:1,cpu". Ranks take them in turns. \param gpus of that machine; 0:
/// nobody knows
tl::expected<std::vector<processor>, std::string> parse_devices(const std::string& text,
                                                                int gpus);

/// On error says what is wrong, and what is allowed.
tl::expected<run_options, std::string> parse(const typed_run& typed);

} // namespace troupe
