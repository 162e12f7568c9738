// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/checkpoint_manifest.hpp"
#include "actors/checkpoints/checkpoint_places.hpp"
#include "actors/checkpoints/whole_training.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace troupe {

/// A training that was saved, and the folder that it was read from.
struct found_checkpoint {
  std::filesystem::path folder;
  checkpoint_facts facts;
  std::shared_ptr<const saved_training> saved;
  std::vector<std::string> passed_over; ///< Why newer ones were not read.
};

// A checkpoint appears in its folder (checkpoint_places.hpp) when all of it is on the
// disk, its manifest last. What a stage saved is one file (stage-0.safetensors; with
// its tensor shard and data replica if there are several), and its tensors are called
// as parameters are, those of older versions and moments with that before:
// moment-0/NAME.

/// Writes a checkpoint, and then removes newer ones, which were passed over, and all
/// but the `keep` newest. Empty on success, else one sentence; older ones stay in that
/// case. Values that are not finite are not written.
std::string write_checkpoint(const std::filesystem::path& folder, const run_plan& plan,
                             const training_copies& all, int keep);

/// Reads a manifest, and checks every file that it names, byte by byte. On error says
/// what is wrong in one sentence.
tl::expected<checkpoint_facts, std::string>
check_checkpoint(const std::filesystem::path& one);

/// Reads the newest checkpoint that is whole, of those that a path names
/// (checkpoints_at). On error says why there is none.
/// \param most_batches newer ones do not count
tl::expected<found_checkpoint, std::string>
newest_checkpoint(const std::filesystem::path& place, const network<float>& whole,
                  int most_batches = std::numeric_limits<int>::max());

} // namespace troupe
