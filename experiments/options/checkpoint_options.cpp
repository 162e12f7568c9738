// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/checkpoint_options.hpp"

#include "actors/checkpoints/checkpoint_places.hpp"
#include "experiments/options/changeable_options.hpp"
#include "experiments/options/option_list.hpp"

namespace troupe {

void add_checkpoints(option_list& to, checkpoint_options& place) {
  to.begin_group("Output");
  to.add_option("--checkpoint", place.folder,
                "Folder for checkpoints: all that the training needs to go on, at the "
                "end or after Ctrl-C too.");
  to.add_option("--checkpoint-every", place.every,
                "Steps from one checkpoint to the next.");
  to.add_option("--keep", place.keep, "Checkpoints that stay; older ones are removed.");
  to.add_option("--resume", place.resume,
                "Folder of checkpoints whose newest the training goes on from, on any "
                "mesh, or one checkpoint, as c/batch-8. Value auto: the folder of "
                "--checkpoint; without a checkpoint there, a new start. --steps counts "
                "those before too. Data and options that decide the numbers are the "
                "checkpoint's unless they are given.");
  to.add_option("--change", place.change,
                "Names of what may differ from the checkpoint's, as data,lr. There are "
                  + changeable_names() + ".");
}

void find_checkpoints(checkpoint_options& o) {
  if (o.resume != "auto")
    return;
  o.resumes_if_any = true;
  o.resume = checkpoints_in(o.folder).empty() ? "" : o.folder;
}

std::string refusal(const checkpoint_options& o) {
  if (o.resumes_if_any && o.folder.empty())
    return "--resume auto goes on from the checkpoints of --checkpoint: say "
           "--checkpoint and --checkpoint-every too, or name a folder, as ./auto";
  if (o.folder.empty() != (o.every == 0))
    return "--checkpoint says where checkpoints go, --checkpoint-every how many steps "
           "lie between two: give both";
  if (o.every < 0)
    return "--checkpoint-every is at least 1";
  if (o.keep < 1)
    return "--keep is at least 1";
  for (const auto& name : split(o.change, ','))
    if (std::ranges::count(changeable_options(), name, &changeable_option::name) == 0)
      return "--change " + o.change + ": '" + name
             + "' is none of what can change: " + changeable_names();
  return {};
}

} // namespace troupe
