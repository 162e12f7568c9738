// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/checkpoint_saver.hpp"

#include "experiments/options/output_places.hpp"

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

void checkpoint_saver::save(training_copies all) {
  wait();
  const auto given = std::make_shared<training_copies>(std::move(all));
  const auto write = [this, given] {
    const auto copies = std::move(*given); // freed as soon as the checkpoint is written
    return write_checkpoint(options_.folder, plan_, copies, options_.keep);
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

void checkpoint_saver::note(const std::string& wrong) {
  auto reason = without_numbers(wrong);
  if (reason == reason_) {
    untold_ += wrong.empty() ? 0 : 1;
    return;
  }
  count_failures();
  reason_ = std::move(reason);
  if (!wrong.empty())
    complain_("no checkpoint: " + wrong);
}

void checkpoint_saver::count_failures() {
  if (const int more = std::exchange(untold_, 0); more > 0)
    complain_("no checkpoint: " + std::to_string(more)
              + " more could not be written, for the same reason");
}

namespace {

/// One sentence if checkpoints in the folder exclude new ones; empty if not.
std::string refusal_of_others(const checkpoint_options& o) {
  std::error_code failed;
  if (is_checkpoint(o.folder))
    return "--checkpoint: " + o.folder
           + " is a checkpoint itself: name the folder above it, or another";
  const auto all = checkpoints_in(o.folder);
  if (all.empty() || std::filesystem::equivalent(o.folder, o.resume, failed))
    return {};
  const auto named = checkpoints_at(o.resume);
  const bool is_here =
    !named.empty() && std::ranges::any_of(all, [&](const std::filesystem::path& one) {
      return std::filesystem::equivalent(one, named.front(), failed);
    });
  if (!is_here)
    return "--checkpoint: " + o.folder
           + " has checkpoints of another training: go on from them with --resume "
           + o.folder + ", or name another folder";
  return std::filesystem::equivalent(all.front(), named.front(), failed)
           ? ""
           : "--checkpoint: new checkpoints would replace " + all.front().string()
               + ", which is newer than " + named.front().string()
               + ": name another folder, or move the newer ones out of this one";
}

} // namespace

std::string refusal_of_folder(const checkpoint_options& o, folder_lock& lock) {
  std::error_code failed;
  std::filesystem::create_directories(o.folder, failed);
  if (failed || !std::filesystem::is_directory(o.folder, failed))
    return "--checkpoint: cannot make the folder " + o.folder
           + (failed ? ": " + failed.message() : "") + "; name another";
  if (!lock.take(o.folder))
    return "--checkpoint: another program is writing into " + o.folder
           + ": name another folder";
  if (auto wrong = refusal_of_others(o); !wrong.empty())
    return wrong;
  sweep_checkpoints(o.folder);
  if (const auto wrong =
        unwritable({"--checkpoint", std::filesystem::path{o.folder} / "batch-0"});
      !wrong.empty())
    return wrong;
  return {};
}

} // namespace troupe
