// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/processor.hpp"
#include "kernels/virtual_clock.hpp"
#include "messaging/interconnect.hpp"
#include "schedules/action.hpp"

#include <chrono>
#include <cstdint>
#include <vector>

// The processors, threads and clock of a run, and the modelled machine of virtual time.

namespace troupe {

enum class clock_kind : std::uint8_t { real, virtual_time };

/// The machine that a run uses, or models in virtual time.
struct run_machine {
  clock_kind clock = clock_kind::real;
  /// Processors of ranks: rank r has entry r modulo the size. Empty: the CPU.
  std::vector<processor> processors = {};
  int threads = 1; ///< Compute threads of all ranks together, in real time.
  /// In real time, the run fails if no action ends for this long, unless an action
  /// under way may take longer (actors/run/stall.hpp).
  std::chrono::milliseconds stall_timeout{10'000};

  cost_model cost = {};     ///< Durations of actions in virtual time.
  machine_model links = {}; ///< Durations of messages in virtual time.
  /// Bytes per second that a rank adds in virtual time, in collectives and for tied
  /// matrices. 0: sums take no time.
  double sum_rate = 0;
  /// Factors of `cost`, one per data replica, in virtual time. Empty: all factors are
  /// 1.
  std::vector<double> slowdowns = {};

  /// The processor that computes for a rank.
  processor processor_of(int rank) const;

  bool has_gpus() const;

  /// True if some of the first `ranks` ranks are on the CPU and others on GPUs. Bits
  /// differ between the two.
  bool mixes_processors(int ranks) const;

  /// Memory for a rank's tensors. Ranks of a process pass buffers to each other. So all
  /// tensors are in GPU-accessible memory if any rank is on a GPU.
  memory_space& memory_at(int rank) const;

  /// Memory for samples and labels; no GPU writes there.
  memory_space& memory_for_samples() const;

  /// True if each rank has a virtual device for sums of messages, beside the device for
  /// passes. If false, the actor that needs a sum computes the sum immediately. Sums of
  /// a GPU group are work of the group in either case.
  bool sums_take_time() const {
    return clock == clock_kind::virtual_time && sum_rate > 0;
  }
};

} // namespace troupe
