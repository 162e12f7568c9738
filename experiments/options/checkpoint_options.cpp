// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/checkpoint_options.hpp"

#include "actors/checkpoints/checkpoint_folders.hpp"
#include "experiments/options/changeable_options.hpp"
#include "experiments/options/option_list.hpp"
#include "experiments/options/suggestion.hpp"

namespace troupe {

void add_checkpoints(option_list& to, checkpoint_options& typed) {
  to.begin_group("Checkpoints");
  to.add_option("--checkpoint", typed.folder,
                "Folder for checkpoints, from which --resume continues the training. "
                "The last one is written at the end, or after Ctrl-C.");
  to.add_option("--checkpoint-every", typed.every,
                "Steps from one checkpoint to the next; 0 saves none.");
  to.add_option("--keep", typed.keep,
                "Number of checkpoints to keep; older ones are removed.");
  to.add_option(
    "--resume", typed.resume,
    "Folder whose newest checkpoint the training continues, or one checkpoint, as "
    "c/batch-8. Value auto: the folder of --checkpoint, or a new start if it has no "
    "checkpoint. The mesh may differ. --steps counts the checkpoint's steps too. "
    "Options that are not given have the checkpoint's values.");
  to.add_option("--change", typed.change,
                "Names of options that may differ from the checkpoint's, as data,lr. "
                "Allowed: "
                  + changeable_names() + ".");
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
           "--checkpoint and --checkpoint-every too, or name a folder, as ./auto";
  if (o.folder.empty() != (o.every == 0))
    return o.folder.empty() ? "--checkpoint-every needs a folder for checkpoints: say "
                              "--checkpoint FOLDER too"
                            : "--checkpoint needs the number of steps between "
                              "checkpoints: say --checkpoint-every 100, as an example";
  if (o.every < 0)
    return "--checkpoint-every " + std::to_string(o.every)
           + ": checkpoints are at least 1 step apart";
  if (o.keep < 1)
    return "--keep " + std::to_string(o.keep) + ": the least is 1 checkpoint";
  for (const auto& name : split(o.change, ','))
    if (std::ranges::count(changeable_options(), name, &changeable_option::name) == 0)
      return "--change " + o.change + ": "
             + unknown_name("option that can change", name,
                            names_in(changeable_names()));
  return {};
}

} // namespace troupe
