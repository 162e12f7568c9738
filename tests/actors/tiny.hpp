// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/costs.hpp"
#include "actors/run/perform.hpp"
#include "models/data/open_data.hpp"
#include "models/network.hpp"
#include "schedules/catalog/catalog.hpp"

#include <catch2/catch_tostring.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

/// Plans small enough for tests; a test changes only the parts that matter to the test.
namespace tiny {

using namespace troupe;

inline model_options gpt(std::int64_t layers = 8) {
  return {"gpt", layers, 8, 2, 4, 11};
}

/// Both clocks. Sanitized builds use only the one with threads, which allocates memory
/// as threads do. Bits are the same in every build.
inline std::vector<clock_kind> clocks() {
#ifdef TROUPE_SANITIZED
  return {clock_kind::real};
#else
  return {clock_kind::virtual_time, clock_kind::real};
#endif
}

/// The catalog's schedules that fit these sizes, but one of each kind. Actors see no
/// difference between the others and these.
inline std::vector<catalog_entry> one_of_each_kind(const shape& dims) {
  std::vector<catalog_entry> result;
  for (const std::string_view name :
       {"naive", "gpipe", "1f1b", "interleaved", "zb-v", "chimera", "dualpipev",
        "pipedream", "2bw", "ampnet"})
    if (validation_error(*find_schedule(name), dims).empty())
      result.push_back(*std::ranges::find(catalog(), name, &catalog_entry::name));
  return result;
}

/// Costs of milliseconds, so that a timeline is easy to read.
inline cost_table costs(double f, double b, double u = 0) {
  cost_table result;
  const auto ms = [](double x) { return static_cast<nanoseconds>(x * 1e6); };
  result.by_op[0] = {ms(f)};
  result.by_op[1] = {ms(b)};
  result.by_op[2] = {ms(b / 2)};
  result.by_op[3] = {ms(b / 2)};
  result.by_op[4] = {ms(u)};
  return result;
}

/// A simulation: virtual time, no arithmetic.
inline run_plan simulation(const schedule& sch, shape dims, double f = 1, double b = 2,
                           double u = 0) {
  return {.sch = sch,
          .dims = dims,
          .work = {},
          .clock = clock_kind::virtual_time,
          .cost = costs_from(costs(f, b, u)),
          .keep_record = true};
}

/// A training that keeps everything that proofs need.
inline run_plan training_of(const schedule& sch, shape dims, clock_kind clock,
                            const model_options& model = gpt(), std::int64_t batch = 0,
                            int threads = 2) {
  auto whole = *make_network<float>(model);
  auto first_layers = *cut(whole, dims.stages, {});
  auto weights = initial_weights(whole, 3);
  return {.sch = sch,
          .dims = dims,
          .work = training{.whole = std::move(whole),
                           .first_layers = std::move(first_layers),
                           .data = *open_data("synthetic", model, 5),
                           .batch = batch > 0 ? batch : 2 * dims.microbatches,
                           .optimizer = {.rate = 0.01},
                           .weights = std::move(weights)},
          .clock = clock,
          .cost = costs_from(costs(1, 2)),
          .threads = threads,
          .keep_record = true,
          .keep_weights = true,
          .keep_gradients = true};
}

/// The parameters that the last evaluation of a run received, one array for each layer.
inline std::vector<std::vector<float>> last_evaluated(run_plan& plan,
                                                      run_result& result) {
  std::vector<std::vector<float>> last;
  plan.evaluate_every = 1;
  const auto see = [&](int batches, const std::vector<const float*>& parameters) {
    if (batches < plan.dims.steps)
      return;
    for (std::size_t l = 0; l < parameters.size(); ++l)
      last.emplace_back(parameters[l],
                        parameters[l] + plan.work->whole.layers[l]->bucket());
  };
  result = perform(plan, {.evaluate = see});
  return last;
}

} // namespace tiny
