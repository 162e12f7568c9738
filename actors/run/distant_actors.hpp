// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/directory.hpp"

namespace troupe {

/// Handles of actors that play in other processes: mail to them is passed on. Made when
/// asked for, and ended as any other.
class distant_actors {
public:
  virtual ~distant_actors() = default;

  virtual scheduler_actor scheduler(int rank) = 0;
  virtual stage_actor stage(position where) = 0;
  virtual performer_actor performer(const troupe::performer& who) = 0;
  virtual data_source_actor data_source(position first) = 0;
  virtual recorder_actor recorder() = 0;
  virtual coordinator_actor coordinator() = 0;
};

} // namespace troupe
