// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/buffer.hpp"

#include <cstdint>
#include <memory>

namespace troupe {

class launched_end;

/// What every tensor message says of its payload.
struct tensor_header {
  int step;             ///< The batch it belongs to.
  int microbatch;       ///< Counted over the run.
  int pipeline;         ///< Data replica times directions, plus direction.
  int stage;            ///< That receives it.
  std::int64_t samples; ///< In the microbatch.
  std::int64_t values;  ///< Of 4 bytes a sample (of bf16 two make one); 0 where nothing
                        ///< is computed.
  int version;          ///< Of the weights that made it.
  /// GPUs move the payload themselves (stage_edges.hpp): how many the sender gave the
  /// receiver before, and the message is a call for it to take this one.
  int call = no_call;

  static constexpr int no_call = -1; ///< The payload is in the message.

  bool is_call() const { return call != no_call; }

  bool operator==(const tensor_header&) const = default;
};

/// The input of a stage's forward; for the first stage tokens or pixels.
struct activation {
  tensor_header header;
  buffer payload; ///< (samples, values); empty of a call, or if nothing is computed.
  /// The work that writes the payload, or gives what a call is for, if a GPU may still
  /// be at it. Within a process alone.
  std::shared_ptr<launched_end> made = {};
};

/// What the last stage compares its logits with.
struct labels {
  tensor_header header;
  buffer payload; ///< (samples, values) integers
};

/// The input of a stage's backward: d loss / d output, (samples, values).
struct gradient {
  tensor_header header;
  buffer payload;
  std::shared_ptr<launched_end> made = {}; ///< As of an activation.
};

} // namespace troupe
