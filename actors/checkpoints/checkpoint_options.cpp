// SPDX-License-Identifier: BSD-3-Clause
#include "actors/checkpoints/checkpoint_options.hpp"

#include "actors/checkpoints/checkpoint_folders.hpp"

namespace troupe {

std::string unreadable_folder_error(const checkpoint_options& o) {
  const auto error_of = [](const char* option, const std::string& folder) {
    const auto error = list_folder(folder).error;
    return error ? std::string{option} + " cannot read the folder " + folder + " ("
                     + error.message()
                     + "): make the folder readable, or name another folder"
                 : "";
  };
  const bool is_auto = o.resume == "auto";
  for (const auto& error : {error_of("--resume", is_auto ? "" : o.resume),
                            error_of("--checkpoint", o.folder)})
    if (!error.empty())
      return error;
  // A checkpoint of the folder must not be replaced.
  if (is_auto && !o.folder.empty())
    for (const auto& entry : named_entries_in(o.folder))
      if (const auto error = unknown_manifest_error(entry); !error.empty())
        return "--resume auto: " + error
               + ": make the file readable, or move the folder to another place";
  return {};
}

void find_checkpoints(checkpoint_options& o) {
  if (o.resume != "auto")
    return;
  o.resumes_if_any = true;
  o.resume = checkpoints_in(o.folder).empty() ? "" : o.folder;
}

std::string validation_error(const checkpoint_options& o) {
  if (o.resumes_if_any && o.folder.empty())
    return "--resume auto continues from the checkpoints of --checkpoint: say "
           "--checkpoint and --checkpoint-every too, or --resume ./auto for a folder "
           "of that name";
  if (o.folder.empty() != (o.every == 0))
    return o.folder.empty() ? "--checkpoint-every needs a folder for checkpoints: say "
                              "--checkpoint FOLDER too"
                            : "--checkpoint needs the number of steps between "
                              "checkpoints: say --checkpoint-every 100, for example";
  if (o.every < 0)
    return "--checkpoint-every " + std::to_string(o.every)
           + ": checkpoints are at least 1 step apart";
  if (o.keep < 1)
    return "--keep " + std::to_string(o.keep) + ": at least 1 checkpoint is kept";
  return {};
}

} // namespace troupe
