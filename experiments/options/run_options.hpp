// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/bf16_block.hpp"
#include "plan/deciding_facts.hpp"
#include "plan/run_plan.hpp"

#include <tl/expected.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace troupe {

/// Options of clock, devices, precision and threads, as typed by the user.
struct typed_run {
  std::string clock = "real";
  int threads = 0;
  std::string device = "cpu";
  std::string precision = "fp32";
  std::string choose; ///< File of bench's table of algorithms; empty: none.
  /// Seconds without the end of an action after which the run fails.
  double stall_timeout = 10;
  /// Set by --nodes, not typed. If true, each node checks the numbers of its GPUs, and
  /// this process checks none.
  bool on_nodes = false;
};

/// The clock, the devices and the precision of a run.
struct run_options {
  clock_kind clock = clock_kind::real;
  precision products = precision::fp32;
  /// The order of sums in bf16 products on the CPU; meaningful if makes_bf16_by_cpu().
  bf16_sums sums = bf16_sums::tiles;
  /// The ranks' processors, in rotation; empty: the CPU.
  std::vector<processor> processors;
  /// True if --device is `cpu` or lists `processors`; each listed entry must have a
  /// rank. False for `cuda`: all GPUs of a rank's machine.
  bool lists_processors = false;
  /// File for the algorithms that bench chooses for products; empty: none.
  std::string choose;
  /// Threads of the CPU; 0: the number of cores of the machine that performs the run.
  int threads = 0;
  std::chrono::milliseconds stall_timeout{10'000};
};

/// One sentence for the user if a CPU computes bf16 products: a warning that the path
/// `plain` is slow, else notice_of_bf16_path(). Empty if there is nothing to say.
std::string warning_of(const run_options& o);

/// Parses and checks the typed options. The error is one sentence with the mistake and
/// the allowed values.
tl::expected<run_options, std::string> parse(const typed_run& typed);

} // namespace troupe
