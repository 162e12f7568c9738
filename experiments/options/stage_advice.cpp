// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/stage_advice.hpp"

#include "models/network.hpp"

#include <algorithm>

namespace troupe {

namespace {

/// Whether a schedule on `ranks` ranks has at most `units` stages, and accepts that
/// number.
bool fits(const run_plan& plan, int ranks, int units) {
  auto dims = plan.dims;
  dims.stages = stages_on(plan.sch.where, ranks);
  return dims.stages <= units && validation_error(plan.sch, dims).empty();
}

/// The number of layers with which the model has as many blocks or layers as stages, or
/// 0.
/// \param has current number of blocks or layers of the model
std::int64_t layers_for(const options& o, int stages, int has) {
  if (!o.checkpoint.resume.empty() || !o.data.init.empty() || o.own.network)
    return 0; // the network comes from a file or from the user
  auto model = o.model;
  model.layers += stages - has;
  const auto changed = make_network<float>(model);
  return changed && changed->units() >= stages ? model.layers : 0;
}

} // namespace

std::string stage_advice(const options& o, const chosen_schedule& chosen,
                         const run_plan& plan) {
  const int units = plan.work->whole.units();
  if (units >= plan.dims.stages || !o.mesh.split.empty())
    return {};
  std::string result;
  const auto add = [&](const std::string& option) {
    result += (result.empty() ? ": say " : " or ") + option;
  };
  // Costs of --split are of the current layers.
  const auto layers =
    o.mesh.unit_costs.empty() ? layers_for(o, plan.dims.stages, units) : 0;
  if (layers > 0 && validation_error(plan.sch, plan.dims).empty())
    add("--layers " + std::to_string(layers));
  for (int ranks = std::min(o.mesh.stages - 1, units); ranks > 0 && !chosen.sizes;
       --ranks)
    if (fits(plan, ranks, units)) {
      add(o.mesh.names_pipe ? "pipe=" + std::to_string(ranks) + " in --mesh"
                            : "--stages " + std::to_string(ranks));
      break;
    }
  return result;
}

} // namespace troupe
