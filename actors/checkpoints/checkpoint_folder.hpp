#pragma once

#include "actors/checkpoints/saved_training.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// What a checkpoint's manifest says.
struct checkpoint_facts {
  int batches = 0;                   ///< That the training has been through,
  std::int64_t samples = 0;          ///< and theirs.
  int older = 0;                     ///< Versions besides the newest.
  int moments = 0;                   ///< Of the optimizer.
  std::vector<std::int64_t> updates; ///< Of each layer.

  struct file {
    std::string name;
    std::int64_t bytes;
    std::uint32_t sum; ///< CRC-32 of its bytes.
  };
  std::vector<file> files; ///< Safetensors: the parameters, versions, moments.
};

/// A training that was saved, and the folder that it was read from.
struct found_checkpoint {
  std::filesystem::path folder;
  checkpoint_facts facts;
  std::shared_ptr<const saved_training> saved;
  std::vector<std::string> passed_over; ///< Why newer ones were not read.
};

// A folder of checkpoints has one folder for each, called after its batches: batch-8.
// It appears under that name when all of it is on the disk, its manifest last.

/// Removes what a killed program has left unfinished. \pre nobody writes there
void sweep_checkpoints(const std::filesystem::path& folder);

/// Writes a checkpoint, and then removes newer ones, which were passed over, and all
/// but the `keep` newest. Empty on success, else one sentence; older ones stay in that
/// case. \param samples of its batches
std::string write_checkpoint(const std::filesystem::path& folder,
                             const network<float>& whole, const saved_training& all,
                             std::int64_t samples, int keep);

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
