// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/optimizer_variants.hpp"

#include "schedules/catalog/catalog.hpp"

#include <array>

namespace troupe {

namespace {

/// The optimizer of a run, with clipping and rates.
struct optimizer_variant {
  typed_optimizer optimizer;
  /// True: clips by the norm of a stage even where updates see the norm of the network.
  /// A tied matrix always needs the network's norm.
  bool clips_by_stage = false;
  bool warms_up = false;
  const char* floor = ""; ///< Of a cosine; empty: the rate is constant.
};

const std::array optimizer_variants{
  optimizer_variant{.optimizer = {.name = "adamw", .rate = 1e-3, .weight_decay = 0.01}},
  optimizer_variant{.optimizer = {.name = "sgd",
                                  .rate = 0.02,
                                  .momentum = 0.9,
                                  .weight_decay = 0.1,
                                  .decay = "matrices"},
                    .warms_up = true,
                    .floor = "0.1"},
  optimizer_variant{.optimizer = {.name = "adamw",
                                  .rate = 1e-3,
                                  .betas = "0.8,0.95",
                                  .epsilon = 1e-4,
                                  .weight_decay = 0.1,
                                  .clip = "0.1"},
                    .floor = "0"},
  optimizer_variant{.optimizer = {.name = "sgd", .rate = 0.1, .weight_decay = 0.05}},
  optimizer_variant{
    .optimizer =
      {.name = "sgd", .rate = 0.02, .momentum = 0.5, .weight_decay = 0, .clip = "0.05"},
    .clips_by_stage = true,
    .warms_up = true},
  optimizer_variant{.optimizer = {.name = "adamw",
                                  .rate = 1e-3,
                                  .weight_decay = 0.3,
                                  .decay = "matrices",
                                  .clip = "0.2"},
                    .warms_up = true},
  optimizer_variant{.optimizer = {.name = "nadam:momentum_decay=0.5",
                                  .rate = 1e-3,
                                  .weight_decay = 0.05,
                                  .clip = "0.3"},
                    .floor = "0.2"},
};

/// Whether updates see only the norm of one stage.
bool has_norm_of_stage_alone(const std::string& name) {
  const auto sch = find_schedule(name.substr(0, name.find(':')));
  return sch && (sch->local_rule() || sch->update_every != 0);
}

} // namespace

void set_optimizer_variant(typed_options& run, std::size_t number) {
  const auto turn = number + number / optimizer_variants.size();
  const auto& variant = optimizer_variants[turn % optimizer_variants.size()];
  run.optimizer = variant.optimizer;
  if (variant.optimizer.clip != "0")
    for (auto& name : run.schedules.names)
      if ((variant.clips_by_stage && !run.model.tied) || has_norm_of_stage_alone(name))
        name += name.find(':') == std::string::npos ? ":clip=stage" : ",clip=stage";
  const std::string floor = variant.floor;
  auto& rates = run.optimizer.rate_schedule;
  rates = floor.empty() ? "constant" : "cosine";
  if (variant.warms_up)
    rates += ",warmup=" + std::to_string(*run.data.batch + *run.data.batch / 2 + 1);
  if (!floor.empty())
    rates += ",floor=" + floor;
}

} // namespace troupe
