#pragma once

#include "actors/checkpoints/checkpoint_manifest.hpp"
#include "actors/checkpoints/whole_training.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
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

// A folder of checkpoints has one folder for each, called after its batches: batch-8.
// It appears under that name when all of it is on the disk, its manifest last. What a
// stage saved is one file (stage-0.safetensors; with its tensor shard and data replica
// if there are several), and its tensors are called as parameters are, those of older
// versions and moments with that before: moment-0/NAME.

/// Removes what a killed program has left unfinished. \pre nobody writes there
void sweep_checkpoints(const std::filesystem::path& folder);

/// Writes a checkpoint, and then removes newer ones, which were passed over, and all
/// but the `keep` newest. Empty on success, else one sentence; older ones stay in that
/// case. Values that are not finite are not written.
std::string write_checkpoint(const std::filesystem::path& folder, const run_plan& plan,
                             const training_copies& all, int keep);

/// The checkpoints of a folder, the newest first: those that have a manifest.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& folder);

/// Reads a manifest, and checks every file that it names, byte by byte. On error says
/// what is wrong in one sentence.
tl::expected<checkpoint_facts, std::string>
check_checkpoint(const std::filesystem::path& one);

/// Reads the newest checkpoint that is whole. On error says why there is none.
tl::expected<found_checkpoint, std::string>
newest_checkpoint(const std::filesystem::path& folder, const network<float>& whole);

} // namespace troupe
