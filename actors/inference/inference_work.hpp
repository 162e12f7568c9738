// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_plan.hpp"
#include "actors/inference/portion.hpp"
#include "kernels/pool.hpp"

#include <functional>
#include <memory>
#include <optional>

// Interfaces of an inference: the work of a stage, and the client that provides inputs
// and consumes results.

namespace troupe {

/// Largest number of portions between two neighbours that are made and not yet
/// consumed: one neighbour reads a portion while the other writes the next.
inline constexpr int portions_between = 2;

/// The work of a stage of an inference. One stage owns the object; a forward on the
/// stage's device shares the ownership until its end.
class inference_work {
public:
  virtual ~inference_work() = default;

  /// Returns a buffer for the result of a portion; empty if the result is only a loss.
  /// \pre at most portions_between - 1 of the returned buffers are in use
  virtual buffer output_buffer() = 0;

  /// Computes `out` from `in`, into the buffer `out.values`. Called on a thread of the
  /// stage's device, one call at a time.
  /// \pre `out` is a copy of `in`, except `out.values`, which is from output_buffer()
  virtual void forward(const portion& in, portion& out) = 0;

  /// Floating-point operations of `forward(in, out)`.
  virtual double operations(const portion& in) const = 0;
};

/// Makes a stage's work and allocates all memory for that work.
/// \param plan,compute_stream,account outlive the work
using inference_work_maker = std::function<std::unique_ptr<inference_work>(
  const inference_plan& plan, int stage, stream& compute_stream,
  memory_account& account)>;

/// The two ends of an inference: provides the first stage's inputs and consumes the
/// last stage's results. Called by one actor thread at a time.
class inference_client {
public:
  virtual ~inference_client() = default;

  /// Returns the next portion; absent if there is none now: results of earlier portions
  /// must come first, or all portions were sent.
  /// \pre the first stage has consumed all but at most portions_between - 1 of the
  /// earlier portions; a portion that the stage computes is not consumed yet
  virtual std::optional<portion> next() = 0;

  /// Consumes the last stage's result of a portion. The buffers are valid during the
  /// call.
  virtual void receive(const portion& result) = 0;

  /// True if the client has all results.
  virtual bool is_done() const = 0;
};

} // namespace troupe
