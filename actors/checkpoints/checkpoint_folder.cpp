// SPDX-License-Identifier: BSD-3-Clause
#include "actors/checkpoints/checkpoint_folder.hpp"

#include "kernels/checksum.hpp"
#include "models/input_file.hpp"
#include "models/optimizer_catalog.hpp"
#include "models/safetensors.hpp"
#include "models/whole_file.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <system_error>

namespace troupe {

namespace {

namespace fs = std::filesystem;
using broken = broken_checkpoint;
using undecided = undecided_checkpoint;

/// Name, size and checksum of a file, without its tensors. \throws undecided
checkpoint_facts::file facts_of(const fs::path& path) {
  const auto file = input_file::open(path, "the checkpoint's file");
  if (!file)
    throw undecided(file.error());
  std::vector<char> block(std::size_t{1} << 20);
  checkpoint_facts::file result{path.filename().string(), file->size(), 0, {}};
  running_checksum sum;
  try {
    for (std::int64_t offset = 0; offset < file->size(); offset += std::ssize(block)) {
      const auto count = std::min(std::ssize(block), file->size() - offset);
      file->read(offset, block.data(), count);
      sum.add(std::as_bytes(std::span{block}.first(static_cast<std::size_t>(count))));
    }
  } catch (const std::runtime_error& error) {
    throw undecided(error.what());
  }
  result.sum = sum.value();
  return result;
}

bool are_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float x) { return std::isfinite(x); });
}

/// "stage-0-shard-1-replica-1"
std::string name_of(const run_plan& plan, position where) {
  auto result = "stage-" + std::to_string(where.stage);
  if (plan.mesh[axis::tensor] > 1)
    result += "-shard-" + std::to_string(where.tensor);
  if (plan.mesh[axis::data] > 1)
    result += "-replica-" + std::to_string(where.data);
  return result;
}

/// The data that a stage saved, as tensors of a safetensors file.
class stage_file {
public:
  stage_file(const run_plan& plan, const mail::saved& from) : plan_(plan) {
    using kind = saved_array::kind;
    const auto versions = pieces_of(plan, from.where, shared_out::parameters),
               of_state = pieces_of(plan, from.where, shared_out::optimizer_state);
    const auto state = state_names(plan.work->optimizer);
    for (std::size_t v = 0; v < from.versions.size(); ++v)
      add({kind::parameters, from.ages[v]}, versions, from.versions[v]);
    for (std::size_t i = 0; i < from.state.size(); ++i)
      add({kind::state, static_cast<int>(i), state[i]}, of_state, from.state[i]);
  }

  /// Writes the file; returns name, size, checksum and tensors. \throws broken
  checkpoint_facts::file write(const fs::path& to) {
    if (const auto error = write_safetensors(to, stored_); !error.empty())
      throw broken(error);
    auto result = facts_of(to);
    result.tensors = std::move(tensors_);
    return result;
  }

private:
  void add(const saved_array& array, const std::vector<saved_piece>& pieces,
           const buffer& values) {
    const auto* from = values.data();
    for (const auto& piece : pieces) {
      const auto& name = piece.part.name;
      if (!are_finite({from, static_cast<std::size_t>(piece.values())}))
        throw broken("values of '" + name + "' are not finite");
      auto& tensor = tensors_.emplace_back(checkpoint_facts::tensor{
        tensor_name(array, name), array,
        plan_.work->whole.layers[piece.layer]->parameter_called(name).dims, piece});
      stored_.push_back(
        {tensor.name,
         piece.is_whole_part() ? piece.part.dims : std::vector{piece.values()}, from});
      from += piece.values();
    }
  }

  const run_plan& plan_;
  std::vector<checkpoint_facts::tensor> tensors_;
  std::vector<tensor_to_store> stored_;
};

/// Puts the tensors of a file into the assembled training. \throws broken
void read_file(const fs::path& path, const checkpoint_facts::file& facts,
               gathered_state& to) {
  const auto file = safetensors_file::open(path);
  if (!file)
    throw broken(file.error());
  if (file->tensors().size() != facts.tensors.size())
    throw broken(path.string() + " has " + std::to_string(file->tensors().size())
                 + " tensors, and the manifest names "
                 + std::to_string(facts.tensors.size()));
  std::vector<float> values;
  for (const auto& tensor : facts.tensors) {
    const auto* const stored = file->find(tensor.name);
    const auto bytes = tensor.piece.values() * std::int64_t{sizeof(float)};
    if (stored == nullptr || stored->type != "F32"
        || stored->end - stored->begin != bytes)
      throw broken(path.string() + " has no tensor '" + tensor.name + "' of "
                   + std::to_string(tensor.piece.values()) + " values");
    const auto* const whole = to.find(tensor.piece.part.name);
    if (whole != nullptr && whole->dims != tensor.dims)
      throw broken(path.string() + " belongs to a network whose '"
                   + tensor.piece.part.name + "' has another shape");
    values.resize(static_cast<std::size_t>(tensor.piece.values()));
    file->read(*stored, 0, values);
    if (!are_finite(values))
      throw broken(path.string() + ": values of '" + tensor.name + "' are not finite");
    if (const auto error = to.put(tensor.array, tensor.piece, values); !error.empty())
      throw broken(path.string() + ": " + error);
  }
}

/// Reads all files of a checkpoint. \throws broken
training_state read_all(const fs::path& folder, const checkpoint_facts& facts,
                        const network<float>& whole) {
  if (facts.updates.size() != whole.layers.size())
    throw broken(folder.string() + " belongs to a network of "
                 + std::to_string(facts.updates.size()) + " layers, not "
                 + std::to_string(whole.layers.size()));
  gathered_state assembled{whole, facts.older, facts.state};
  for (const auto& file : facts.files)
    read_file(folder / file.name, file, assembled);
  auto result = assembled.finish();
  if (!result)
    throw broken(folder.string() + ": " + result.error());
  result->batches = facts.batches;
  result->updates = facts.updates;
  return std::move(*result);
}

/// Checks counts of values. No array may have more values of a parameter than the
/// parameter has. All arrays, except older versions, must have all values. \throws
/// broken
void check_pieces(const fs::path& manifest, const checkpoint_facts& facts) {
  std::map<std::string, std::int64_t> whole; // values of each parameter
  std::map<saved_array, std::map<std::string, std::int64_t>> counts;
  for (const auto& file : facts.files)
    for (const auto& t : file.tensors) {
      const auto& name = t.piece.part.name;
      const auto total = std::accumulate(t.dims.begin(), t.dims.end(), std::int64_t{1},
                                         std::multiplies{});
      auto& so_far = counts[t.array][name];
      so_far += t.piece.values();
      if (whole.emplace(name, total).first->second != total || so_far > total)
        throw broken(manifest.string() + " names more values of '" + name
                     + "' than the parameter has");
    }
  const auto look = [&](const saved_array& array) {
    for (const auto& [name, values] : whole)
      if (const auto count = counts[array][name]; count != values)
        throw broken(manifest.string() + " names " + std::to_string(count) + " of the "
                     + std::to_string(values) + " values of '" + name + "' in "
                     + troupe::name_of(array));
  };
  look({});
  for (std::size_t i = 0; i < facts.state.size(); ++i)
    look({saved_array::kind::state, static_cast<int>(i), facts.state[i]});
}

/// Advice on a checkpoint whose name has other batches than its manifest.
std::string advice_on_renamed(const fs::path& folder, int batches) {
  const auto right = "batch-" + std::to_string(batches);
  std::error_code failed;
  return fs::exists(folder.parent_path() / right, failed)
           ? "move " + folder.string() + " to another place, as " + right + " exists"
           : "rename " + folder.string() + " to " + right;
}

/// Reads the manifest, and compares the folder's name with the number of batches.
/// \throws undecided if the folder was renamed; as read_manifest()
checkpoint_facts manifest_in(const fs::path& folder) {
  auto result = read_manifest(folder / manifest_name);
  const int named = batches_of(folder); // -1: a copy that the user has renamed
  if (named >= 0 && result.batches != named)
    throw undecided((folder / manifest_name).string() + " records "
                    + std::to_string(result.batches)
                    + " batches, and a folder batch-N must have N batches: "
                    + advice_on_renamed(folder, result.batches));
  return result;
}

/// Reads the manifest and checks all files. \throws undecided, broken
checkpoint_facts checked(const fs::path& folder) {
  auto result = manifest_in(folder);
  if (result.samples % result.batches != 0)
    throw broken((folder / manifest_name).string() + " records "
                 + std::to_string(result.batches) + " batches and "
                 + std::to_string(result.samples)
                 + " samples, but samples must be a multiple of batches");
  check_pieces(folder / manifest_name, result);
  for (const auto& file : result.files) {
    const auto path = folder / file.name;
    std::error_code failed;
    const auto status = fs::status(path, failed);
    if (!fs::status_known(status))
      throw undecided("cannot read " + path.string() + ": " + failed.message());
    if (!fs::is_regular_file(status))
      throw broken(path.string()
                   + (fs::exists(status) ? " is not a regular file" : " is missing"));
    // The size is checked first: a sparse file of the wrong size would take long to
    // read.
    const auto bytes = fs::file_size(path, failed);
    if (failed)
      throw undecided("cannot read " + path.string() + ": " + failed.message());
    if (bytes != static_cast<std::uintmax_t>(file.bytes))
      throw broken(path.string() + " has " + std::to_string(bytes) + " bytes, not "
                   + std::to_string(file.bytes));
    const auto current = facts_of(path);
    if (current.sum != file.sum)
      throw broken(path.string()
                   + " has changed since it was written, as its checksum is "
                   + text_of_sum(current.sum) + ", not " + text_of_sum(file.sum));
  }
  return result;
}

/// The state of a checkpoint on disk.
enum class condition : std::uint8_t { whole, undecided, broken };

struct verdict_on_checkpoint {
  condition found;
  std::string reason;
};

/// Reads all files of a checkpoint.
verdict_on_checkpoint examined(const fs::path& folder) {
  try {
    (void)checked(folder);
    return {condition::whole, folder.string() + " is whole"};
  } catch (const undecided& error) {
    return {condition::undecided, error.what()};
  } catch (const broken& error) {
    return {condition::broken, error.what()};
  } catch (const std::bad_alloc&) {
    return {condition::undecided, "there is no memory for " + folder.string()};
  }
}

/// Removes broken checkpoints of more batches than the written one. Of the others that
/// are whole the `keep` newest stay, with the written one. Broken checkpoints of fewer
/// batches stay until `keep` whole ones are newer. Returns the first error, after all
/// removals were tried. \throws std::runtime_error if the folder cannot be read
std::string remove_others(const fs::path& folder, const fs::path& written, int keep,
                          known_checkpoints& known) {
  int kept = 1;
  std::string first_error;
  for (const auto& checkpoint : checkpoints_in(folder)) {
    if (checkpoint == written)
      continue;
    const auto name = checkpoint.filename().string();
    const bool is_newer = batches_of(checkpoint) > batches_of(written);
    if (!known.whole.contains(name) && !known.kept.contains(name)) {
      const auto found = examined(checkpoint).found;
      if (is_newer ? found != condition::broken : found == condition::undecided)
        known.kept.insert(name);
      else if (found == condition::whole)
        known.whole.insert(name); // counts like the program's own
    }
    if (known.kept.contains(name))
      continue;
    const bool counts = known.whole.contains(name);
    if (is_newer || (counts ? ++kept > keep : kept >= keep))
      try {
        remove_checkpoint(checkpoint);
        known.whole.erase(name);
      } catch (const fs::filesystem_error& error) {
        if (first_error.empty())
          first_error = written.string() + " is written, and " + checkpoint.string()
                        + " cannot be removed: " + error.code().message();
      }
  }
  return first_error;
}

/// Writes all files, then the manifest, then renames the folder `name`. \throws broken,
/// fs::filesystem_error
void write(const fs::path& name, const run_plan& plan, const training_copies& copies,
           const known_checkpoints& known) {
  if (is_checkpoint(name) && !known.whole.contains(name.filename().string()))
    if (const auto reason = reason_to_keep(name); !reason.empty())
      throw broken(name.string()
                   + " may be another checkpoint, which is not replaced: " + reason);
  unfinished_folder unfinished{name};
  const auto& target = unfinished.path();
  checkpoint_facts facts{
    .batches = copies.batches,
    .samples = copies.batches * plan.work->batch,
    .state = state_names(plan.work->optimizer),
    .updates = updates_in(plan, copies),
    .training = training_facts{plan.work->options, plan.work->data->identity()}};
  for (const auto& stage : copies.stages) {
    facts.older = std::max(facts.older, stage.ages.empty() ? 0 : stage.ages.back());
    facts.files.push_back(stage_file{plan, stage}.write(
      target / (name_of(plan, stage.where) + ".safetensors")));
  }
  check_pieces(target / manifest_name, facts); // before an older checkpoint of this
                                               // name is replaced
  if (const auto error = write_whole_file(target / manifest_name, manifest_of(facts));
      !error.empty())
    throw broken(error);
  reach_disk(target);
  unfinished.finish();
  reach_disk(name.parent_path());
}

} // namespace

checkpoint_outcome write_checkpoint(const fs::path& folder, const run_plan& plan,
                                    const training_copies& copies, int keep,
                                    known_checkpoints& known) {
  const auto name = folder / ("batch-" + std::to_string(copies.batches));
  try {
    write(name, plan, copies, known);
    known.whole.insert(name.filename().string());
  } catch (const broken& error) {
    return {.write_error = error.what()};
  } catch (const fs::filesystem_error& error) {
    return {.write_error =
              "cannot write " + folder.string() + ": " + error.code().message()};
  } catch (const std::exception& error) { // no memory: the training continues
    return {.write_error = "cannot write " + folder.string() + ": " + error.what()};
  }
  try {
    return {.removal_error = remove_others(folder, name, keep, known)};
  } catch (const std::exception& error) {
    return {.removal_error = name.string()
                             + " is written, and no older checkpoint is "
                               "removed: "
                             + error.what()};
  }
}

tl::expected<checkpoint_facts, std::string> check_checkpoint(const fs::path& folder) {
  try {
    return checked(folder);
  } catch (const broken& error) {
    return tl::unexpected<std::string>{error.what()};
  } catch (const std::bad_alloc&) {
    return tl::unexpected{"there is no memory for " + folder.string()};
  }
}

std::string reason_to_keep(const fs::path& folder) {
  const auto [found, reason] = examined(folder);
  return found == condition::broken ? "" : reason;
}

tl::expected<found_checkpoint, std::string>
newest_checkpoint(const fs::path& path, const network<float>& whole, int most_batches) {
  found_checkpoint result;
  std::string first_error; // of a folder with a manifest
  const auto skip = [&](const fs::path& folder, const std::string& error) {
    result.passed_over.push_back(error);
    if (first_error.empty() && is_checkpoint(folder))
      first_error = error;
  };
  for (const auto& folder :
       is_checkpoint(path) ? checkpoints_at(path) : named_entries_in(path)) {
    if (batches_of(folder) > most_batches)
      continue;
    if (const auto error = manifest_error(folder); !error.empty()) {
      skip(folder, error);
      continue;
    }
    try {
      result.facts = checked(folder);
      result.saved =
        std::make_shared<const training_state>(read_all(folder, result.facts, whole));
      result.folder = folder;
      return result;
    } catch (const std::runtime_error& error) { // also from a file that cannot be read
      skip(folder, error.what());
    } catch (const std::bad_alloc&) {
      skip(folder, "there is no memory for " + folder.string());
    }
  }
  if (!first_error.empty())
    return tl::unexpected{first_error};
  return tl::unexpected{
    no_checkpoint_in(path)
    + (result.passed_over.empty() ? "" : ": " + result.passed_over.front())};
}

std::string batch_error(const found_checkpoint& found, std::int64_t batch) {
  const std::int64_t batches = found.facts.batches, samples = found.facts.samples;
  if (samples == batches * batch)
    return {};
  const auto size = std::to_string(samples / std::max<std::int64_t>(batches, 1));
  return "--resume: " + found.folder.string() + " was trained with batches of " + size
         + " samples, not of " + std::to_string(batch) + ": say --batch " + size;
}

} // namespace troupe
