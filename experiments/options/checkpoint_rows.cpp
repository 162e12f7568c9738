// SPDX-License-Identifier: BSD-3-Clause
#include "actors/checkpoints/checkpoint_folders.hpp"
#include "experiments/options/checkpoint_options.hpp"
#include "experiments/options/option_catalog.hpp"
#include "experiments/options/parsing.hpp"

#include <algorithm>

namespace troupe {

option_rows checkpoint_rows() {
  constexpr auto group = &typed_options::checkpoint;
  using typed = checkpoint_options;
  return under(
    "Checkpoints", [](const program_info& p) { return p.resumes; },
    {row<group, &typed::folder>(
       "--checkpoint",
       "Folder for checkpoints, from which --resume continues the training. The last "
       "checkpoint is written at the end of the run, or after Ctrl-C."),
     row<group, &typed::every>(
       "--checkpoint-every",
       "Steps from one checkpoint to the next. Value 0: no checkpoints."),
     row<group, &typed::keep>(
       "--keep", "Number of checkpoints to keep. Older checkpoints are removed.",
       {.effect = {[](run_view r) { return !r.o.checkpoint.folder.empty(); },
                   "applies only with checkpoints: say --checkpoint and "
                   "--checkpoint-every too, or leave % out"}}),
     row<group, &typed::resume>(
       "--resume",
       "Folder whose newest checkpoint is continued, or of one checkpoint. c/batch-8 "
       "is a checkpoint of the folder c. Value auto: the folder of --checkpoint, or a "
       "new start if that folder has no checkpoint. --steps counts the checkpoint's "
       "steps too. Options of model, data, batch, precision and optimizer that are not "
       "given have the checkpoint's values. --schedule, --stages and --mesh are not "
       "taken from the checkpoint, and may differ."),
     row<group, &typed::change>(
       "--change",
       "Names of options that may differ from the checkpoint's, for example data,lr. "
       "Allowed: ",
       {.effect = {[](run_view r) {
                     return !r.o.checkpoint.resume.empty()
                            || r.o.checkpoint.resumes_if_any;
                   },
                   "names options that may differ from a checkpoint's: say --resume "
                   "too, or leave % out"},
        .list = [] { return listed(change_names()) + "."; }})});
}

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
  const auto changeable = change_names();
  for (const auto& name : split(o.change, ','))
    if (std::ranges::count(changeable, name) == 0)
      return "--change " + o.change + ": "
             + unknown_name("option that can change", name, changeable);
  return {};
}

} // namespace troupe
