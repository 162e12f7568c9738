// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/inference/inference_plan.hpp"
#include "actors/inference/portion.hpp"
#include "kernels/pool.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace troupe {

/// Portions that may lie between two neighbours, made and not yet used up: one that is
/// read while the next is written.
inline constexpr int portions_between = 2;

/// What a stage of an inference computes. One stage owns it.
class inference_work {
public:
  virtual ~inference_work() = default;

  /// Room for what it makes of a portion; empty where nothing but a loss goes on. \pre
  /// no more than portions_between - 1 are held
  virtual buffer room() = 0;

  /// Makes `out` of `in`, with the room that out.values has. On the stage's device.
  virtual void forward(const portion& in, portion& out) = 0;

  /// Floating-point operations of that.
  virtual double operations(const portion& in) const = 0;
};

/// Makes a stage's work with all its memory. \param plan,on,account outlive it
using inference_work_maker = std::function<std::unique_ptr<inference_work>(
  const inference_plan& plan, int stage, stream& on, memory_account& account)>;

/// The two ends of an inference: what goes into the first stage, and what becomes of
/// that which leaves the last. For one thread at a time, an actor's.
class inference_client {
public:
  virtual ~inference_client() = default;

  /// The next portion; absent while there is none: some that are on their way come
  /// first, or all have gone. \pre fewer than portions_between of its own wait to be
  /// used up by the first stage
  virtual std::optional<portion> next() = 0;

  /// What the last stage has made of a portion.
  virtual void take(const portion& made) = 0;

  /// Whether all has come that it wanted.
  virtual bool over() const = 0;
};

} // namespace troupe
