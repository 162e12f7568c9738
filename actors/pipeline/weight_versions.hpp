// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/buffer.hpp"
#include "kernels/weight_place.hpp"
#include "schedules/stage_version_ledger.hpp"

#include <functional>
#include <vector>

namespace troupe {

/// Buffers for a copy of a version, and the work that writes the copy. Both are empty
/// where nothing is computed. The version must stay stored until the work has ended.
struct parameter_copy {
  std::vector<buffer> to;
  std::function<void()> run;
};

/// The buffers of an update: the update reads the newest version and writes the next
/// version.
struct update_buffers {
  /// Buffers by bucket; `to` may be the same buffers as `from`.
  std::vector<buffer> from, to;
  /// Copies the version in `from` to the buffers of older versions. The caller runs the
  /// function once, on the stage's device, before the update writes to `to`. Empty if
  /// the update need not save a version.
  std::function<void()> save_previous = {};
};

/// The weight versions that a stage stores: parameters (stage_versions), or no values
/// (simulated_stage). Results are empty in a simulation. One thread at a time calls the
/// functions.
class weight_versions {
public:
  virtual ~weight_versions() = default;

  /// The buffers of a version's parameters in fp32, by bucket.
  /// \pre the version is the newest, or all are fp32
  virtual std::vector<buffer> parameters(int version) const = 0;

  /// The buckets of any stored version, in fp32 or with bf16 matrices; valid until the
  /// next update.
  /// \pre no update is under way
  virtual std::vector<weight_bucket<float>> stored(int version) const = 0;

  /// Returns the buffers for version `update.from` + 1, and the work that saves version
  /// `update.from`; starts no work. With `update.in_place`, version `update.from` is
  /// not stored any more.
  /// \throws std::logic_error if no buffer is free: keep_only() has to come first
  virtual update_buffers prepare_update(const update_facts& update) = 0;

  /// Drops the versions that the version ledger no longer contains.
  virtual void keep_only(const stage_version_ledger& ledger) = 0;

  /// Returns the buffers for a copy of a version, and the work that writes the copy,
  /// which the caller runs.
  /// \pre the version is the newest, or all are fp32
  /// \throws std::logic_error if no buffer for copies is free
  virtual parameter_copy copy(int version) = 0;
};

} // namespace troupe
