// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/buffer.hpp"

#include <cstdint>
#include <memory>

// Tensor messages between stages: activations, gradients and labels, each a header and
// a payload.

namespace troupe {

class gpu_completion;

/// The header of every tensor message: identifies and describes the payload.
struct tensor_header {
  int step; ///< Index of the microbatch's batch, counted over the run from 0.
  /// Index of the microbatch in the data replica, counted over the run from 0.
  int microbatch;
  /// Index of the pipeline: data replica times number of directions, plus direction.
  int pipeline;
  int stage;            ///< The receiving stage.
  std::int64_t samples; ///< Samples of the microbatch.
  /// Number of 4-byte values per sample; two bf16 values count as one value. 0 where
  /// nothing is computed.
  std::int64_t values;
  int version; ///< Version of the weights that made the payload; 0 from a data source.
  /// In a call: the number of earlier calls from the sender to the receiver. GPUs move
  /// the payload themselves (stage_channels.hpp), and the message requests the
  /// receiving transfer.
  int call = no_call;

  static constexpr int no_call = -1; ///< The payload is in the message.

  bool is_call() const { return call != no_call; }

  bool operator==(const tensor_header&) const = default;
};

/// The input of a stage's forward; for the first stage tokens or pixels.
struct activation {
  tensor_header header;
  buffer payload; ///< (samples, values); empty in a call, or if nothing is computed.
  /// The GPU work that writes the payload, or that sends a call's payload. Null if the
  /// work has ended, if no GPU works on the payload, and between processes.
  std::shared_ptr<gpu_completion> pending_write = {};
};

/// The labels with which the last stage compares its logits.
struct labels {
  tensor_header header;
  buffer payload; ///< (samples, values) 32-bit integers
};

/// The input of a stage's backward: d loss / d output of the stage, (samples, values).
/// The payload is empty in a call, or if nothing is computed.
struct gradient {
  tensor_header header;
  buffer payload;
  /// The GPU work that writes the payload, or that sends a call's payload. Null if the
  /// work has ended, if no GPU works on the payload, and between processes.
  std::shared_ptr<gpu_completion> pending_write = {};
};

} // namespace troupe
