// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

// The program of a schedule that is a slot formula.

namespace troupe {

/// Generates the program of a slot formula: forwards and backwards of a rank's stages,
/// merged by slot, with an update after each minibatch (the microbatches of one
/// update).
class slot_program {
public:
  /// \pre the order of `sch` is a slot_formula, and `sch` allows `dims`
  slot_program(const schedule& sch, const shape& dims, int rank);

  /// The next action; absent at the end.
  std::optional<action> operator()();

private:
  /// The actions of one operation of one stage in the current batch: the index of the
  /// next action's microbatch, and the slot of that action.
  struct stream {
    op operation;
    hosted_stage where;
    int k;
    std::int64_t slot;
  };

  void begin_batch();
  void end_batch();
  int microbatches_of_stream() const;
  bool update_is_due(int backwards) const;
  int index_of(const stream& s) const;

  schedule schedule_;
  slot_formula slot_of_;
  shape dims_;
  std::vector<hosted_stage> hosted_;
  int batch_ = 0;
  std::vector<stream> streams_; // with actions left in this batch
  std::vector<action> updates_; // due updates, of which some may be generated already
  std::size_t next_update_ = 0;
};

} // namespace troupe
