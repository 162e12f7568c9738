// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/loss_report.hpp"

#include <cmath>
#include <sstream>
#include <stdexcept>

namespace troupe {

mail::microbatch_loss report_of(const run_plan& plan, position where, int microbatch,
                                const loss_sum& loss, int version, nanoseconds ended) {
  const mail::microbatch_loss result{
    plan.microbatch_of_all(where.data, microbatch),
    plan.samples_of(where.data, microbatch),
    of_whole_samples(loss, plan.work ? plan.work->whole.rows : 1,
                     plan.length_of(where.data, microbatch)),
    ended};
  if (std::isfinite(loss.loss))
    return result;
  std::ostringstream why;
  why << "the loss of microbatch " << result.microbatch << " is not finite ("
      << loss.loss << ") on weight version " << version
      << (version == 0
            ? ", before any update: check the initial weights (--init) and the data"
            : "; a lower learning rate or clipping may help");
  throw std::runtime_error(why.str());
}

} // namespace troupe
