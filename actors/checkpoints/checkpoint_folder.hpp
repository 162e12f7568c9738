// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/checkpoint_folders.hpp"
#include "actors/checkpoints/checkpoint_manifest.hpp"
#include "actors/checkpoints/gathered_state.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>
#include <string>
#include <vector>

// Writes, checks and reads checkpoints as folders on disk.

namespace troupe {

/// A training read from a checkpoint, and the folder of that checkpoint.
struct found_checkpoint {
  std::filesystem::path folder;
  checkpoint_facts facts;
  std::shared_ptr<const training_state> saved;
  /// Errors of newer checkpoints that could not be read, and of entries with a
  /// checkpoint's name and no manifest; the newest first.
  std::vector<std::string> passed_over;
};

// A checkpoint gets the final name of its folder (checkpoint_folders.hpp) once all
// files are on the disk; the manifest is written last. Each stage that saves values
// writes one file, stage-0.safetensors. If there are several tensor shards or data
// replicas, the name also has the index of the shard or replica. Tensors have the names
// of parameters. Older versions and state arrays have a prefix: mean/NAME.

/// Names of checkpoints in one folder, such as "batch-8", that need not be examined
/// again.
struct known_checkpoints {
  /// Written by this program, or found whole: may be replaced, and removed by age.
  std::set<std::string> whole = {};
  /// Neither replaced nor removed.
  std::set<std::string> kept = {};
};

/// Errors of write_checkpoint(), each one sentence or empty.
struct checkpoint_outcome {
  std::string write_error = {};   ///< Why the checkpoint was not written.
  std::string removal_error = {}; ///< Why an older checkpoint could not be removed.
};

/// Writes a checkpoint as a subfolder of `folder`. Replaces a checkpoint of the same
/// name if `known` has that name, or if that checkpoint is broken. Then removes
/// checkpoints of more batches that are broken. Of the whole checkpoints the `keep`
/// newest stay, the written one included. If writing fails, no checkpoint is removed.
/// If a removal fails, the others are still tried. Values that are not finite are an
/// error and are not written.
///
/// Checkpoints that are not proven broken, and that this program has not written under
/// their name (undecided_checkpoint), are not counted, removed or replaced.
/// \param known of earlier calls for this folder; the written name is added
/// \pre the plan has a training (`plan.work`), and `keep` is at least 1
checkpoint_outcome write_checkpoint(const std::filesystem::path& folder,
                                    const run_plan& plan, const training_copies& copies,
                                    int keep, known_checkpoints& known);

/// Reads the manifest of one checkpoint and checks the counts of batches and values.
/// Checks the size and the checksum of every file that the manifest names. Returns the
/// contents of the manifest, or the first error in one sentence.
/// \param folder the checkpoint's own folder
tl::expected<checkpoint_facts, std::string>
check_checkpoint(const std::filesystem::path& folder);

/// Why a checkpoint must stay, in one sentence: the checkpoint is whole, or no damage
/// is proven (undecided_checkpoint). Empty if the checkpoint is broken. \param folder
/// the checkpoint's own folder
std::string reason_to_keep(const std::filesystem::path& folder);

/// Reads the newest complete checkpoint of the network `whole` that `path` names
/// (checkpoints_at). The error says why the newest candidate was not read, or that
/// there is no checkpoint.
/// \param most_batches folders whose names have more batches are skipped; a renamed
/// checkpoint is never skipped
tl::expected<found_checkpoint, std::string>
newest_checkpoint(const std::filesystem::path& path, const network<float>& whole,
                  int most_batches = std::numeric_limits<int>::max());

/// One sentence if a checkpoint's training had batches of another size, else an empty
/// text.
std::string batch_error(const found_checkpoint& found, std::int64_t batch);

} // namespace troupe
