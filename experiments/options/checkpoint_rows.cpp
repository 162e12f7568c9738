// SPDX-License-Identifier: BSD-3-Clause
#include "actors/checkpoints/checkpoint_options.hpp"
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

std::string change_error(const std::string& change) {
  const auto changeable = change_names();
  for (const auto& name : split(change, ','))
    if (std::ranges::count(changeable, name) == 0)
      return "--change " + change + ": "
             + unknown_name("option that can change", name, changeable);
  return {};
}

} // namespace troupe
