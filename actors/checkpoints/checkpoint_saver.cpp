// SPDX-License-Identifier: BSD-3-Clause
#include "actors/checkpoints/checkpoint_saver.hpp"

#include "models/whole_file.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

/// The sentence without its digits, which is the same for each checkpoint.
std::string without_numbers(std::string sentence) {
  std::erase_if(sentence, [](char c) { return c >= '0' && c <= '9'; });
  return sentence;
}

} // namespace

checkpoint_saver::checkpoint_saver(const checkpoint_options& o, const run_plan& plan,
                                   std::function<void(const std::string&)> complain)
  : options_(o), plan_(plan), complain_(std::move(complain)) {
  // nop
}

checkpoint_saver::~checkpoint_saver() {
  wait();
  count_failures();
}

void checkpoint_saver::save(training_copies saved) {
  wait();
  const auto shared_copies = std::make_shared<training_copies>(std::move(saved));
  const auto write = [this, shared_copies] {
    const auto copies =
      std::move(*shared_copies); // freed as soon as the checkpoint is written
    return write_checkpoint(options_.folder, plan_, copies, options_.keep, known_);
  };
  try {
    last_ = std::async(std::launch::async, write);
  } catch (const std::system_error&) { // no thread: the training waits for the write
    last_ = std::async(std::launch::deferred, write);
    wait();
  }
}

void checkpoint_saver::wait() {
  if (!last_.valid())
    return;
  note(last_.get());
}

void checkpoint_saver::note(const checkpoint_outcome& outcome) {
  if (auto reason = without_numbers(outcome.removal_error);
      reason != std::exchange(removal_reason_, reason) && !reason.empty())
    complain_(outcome.removal_error);
  const auto& error = outcome.write_error;
  auto reason = without_numbers(error);
  if (reason == reason_) {
    unreported_ += error.empty() ? 0 : 1;
    return;
  }
  count_failures();
  reason_ = std::move(reason);
  if (!error.empty())
    complain_("no checkpoint: " + error);
}

void checkpoint_saver::count_failures() {
  if (const int more = std::exchange(unreported_, 0); more > 0)
    complain_("no checkpoint: " + std::to_string(more)
              + (more == 1 ? " more checkpoint" : " more checkpoints")
              + " could not be written, for the same reason");
}

namespace {

/// One sentence if checkpoints in the folder exclude new ones; empty if not.
std::string existing_checkpoints_error(const checkpoint_options& o) {
  std::error_code failed;
  if (is_checkpoint(o.folder))
    return "--checkpoint " + o.folder
           + " is a checkpoint: name the folder that contains the checkpoint, or "
             "another folder";
  const auto existing = checkpoints_in(o.folder);
  if (existing.empty() || std::filesystem::equivalent(o.folder, o.resume, failed))
    return {};
  const auto named = checkpoints_at(o.resume);
  const bool is_here =
    !named.empty()
    && std::ranges::any_of(existing, [&](const std::filesystem::path& checkpoint) {
         return std::filesystem::equivalent(checkpoint, named.front(), failed);
       });
  if (!is_here)
    return "--checkpoint " + o.folder
           + " has checkpoints of another training: continue that training by --resume "
           + o.folder + ", or name another folder";
  for (const auto& checkpoint : existing) {
    if (std::filesystem::equivalent(checkpoint, named.front(), failed))
      return {};
    if (!reason_to_keep(checkpoint).empty())
      return "--checkpoint would replace " + checkpoint.string()
             + ", which is newer than " + named.front().string()
             + ": name another folder, or move newer checkpoints out of the folder";
  }
  return {};
}

/// One sentence if the run will write a checkpoint whose name belongs to data that must
/// stay; empty if not. The names of an interrupted run's end are not known.
std::string taken_names_error(const std::string& folder, const run_plan& plan) {
  const int first = plan.dims.batches_before, last = first + plan.dims.steps;
  for (const auto& entry : named_entries_in(folder)) {
    const int batches = batches_of(entry);
    if (batches <= first || batches > last
        || (batches != last && batches % plan.copies.checkpoint_every != 0))
      continue;
    if (auto error = taken_name_error(entry); !error.empty())
      return error;
    if (const auto reason = is_checkpoint(entry) ? reason_to_keep(entry) : "";
        !reason.empty())
      return "--checkpoint would replace " + entry.string() + ", but " + reason
             + ": name another folder, or move that checkpoint out of the folder";
  }
  return {};
}

} // namespace

std::string checkpoint_folder_error(const checkpoint_options& o, const run_plan& plan,
                                    folder_lock& lock) {
  std::error_code failed;
  std::filesystem::create_directories(o.folder, failed);
  if (failed || !std::filesystem::is_directory(o.folder, failed))
    return "--checkpoint cannot make the folder " + o.folder
           + (failed ? " (" + failed.message() + ")" : "") + ": name another folder";
  if (!lock.try_lock(o.folder))
    return "another program is writing into --checkpoint " + o.folder
           + ": name another folder";
  if (auto error = existing_checkpoints_error(o); !error.empty())
    return error;
  if (auto error = taken_names_error(o.folder, plan); !error.empty())
    return error;
  sweep_checkpoints(o.folder);
  const auto error = writability_error(std::filesystem::path{o.folder} / "batch-0");
  return error.empty() ? "" : "--checkpoint: " + error;
}

} // namespace troupe
