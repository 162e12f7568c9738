#include "kernels/device.hpp"

namespace troupe {

void cpu_device::enqueue(work what, on_end ended) {
  const bool computes = what.run || (!what.parts.empty() && what.parts.front().run);
  if (computes && before_work_)
    before_work_();
  occupied now{seen_, {what.kind, what.stage, what.microbatch, what.operations}};
  if (what.run)
    what.run();
  for (const auto& part : what.parts) {
    if (part.run)
      part.run();
    if (part.over)
      part.over();
  }
  ended(now.start(), now.end());
}

} // namespace troupe
