#pragma once

#include "schedules/shape.hpp"

#include <string_view>

namespace troupe {

/// Which version of a stage's parameters a microbatch reads. Version v is what v
/// updates of that stage have made of the initial values.
struct weight_rule {
  /// The version that the forward of `microbatch` reads at `stage`, when an update
  /// covers `update_every` microbatches. Never decreases in `microbatch`.
  using version_of = int (*)(const shape& dims, int stage, int microbatch,
                             int update_every);

  std::string_view name;
  /// Null: the newest there is, again for the backward; nobody keeps a version.
  /// Otherwise the backward reads what its forward read.
  version_of reads;
};

namespace weights {

/// The updates of all batches before, and of no microbatch of this one.
extern const weight_rule flush;

/// Whatever is newest when a forward or a backward begins.
extern const weight_rule latest;

} // namespace weights

} // namespace troupe
