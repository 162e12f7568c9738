#include "experiments/options/checkpoint_options.hpp"

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
                "mesh. --steps counts those before too.");
}

std::string refusal(const checkpoint_options& o) {
  if (o.folder.empty() != (o.every == 0))
    return "--checkpoint says where checkpoints go, --checkpoint-every how many steps "
           "lie between two: give both";
  if (o.every < 0)
    return "--checkpoint-every is at least 1";
  if (o.keep < 1)
    return "--keep is at least 1";
  return {};
}

} // namespace troupe
