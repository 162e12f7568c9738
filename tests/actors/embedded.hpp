// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/embedding/training.hpp"
#include "models/data/open_data.hpp"
#include "schedules/catalog/catalog.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

/// Jobs small enough for tests.
namespace embedded {

using namespace troupe;

inline const model_options small_gpt{"gpt", 4, 8, 2, 4, 11};

inline training_job small_job(const schedule& how = one_f_one_b()) {
  training_job job{.model = small_gpt,
                   .data = *open_data("synthetic", small_gpt, 5),
                   .pipeline_schedule = how};
  job.stages = 3;
  job.microbatches = 4;
  job.steps = 3;
  job.batch = 8;
  job.optimizer.rate = 0.01;
  job.seed = 3;
  job.threads = 2;
  return job;
}

inline training_result finished(const training_job& job) {
  auto result = train(job);
  INFO((result ? result->failure : result.error()));
  REQUIRE(result);
  REQUIRE(result->outcome == ending::finished);
  return *result;
}

inline std::string refusal_of(const training_job& job) {
  const auto result = train(job);
  return result ? "" : result.error();
}

/// y = x w^T + b by the definition, in loops.
class plain_linear : public user_layer {
public:
  plain_linear(const std::string& name, std::int64_t in, std::int64_t out)
    : user_layer({{name + ".weight",
                   {out, in},
                   beginning::uniform,
                   1 / std::sqrt(static_cast<double>(in))},
                  {name + ".bias",
                   {out},
                   beginning::uniform,
                   1 / std::sqrt(static_cast<double>(in))}},
                 in, out) {}

  buffer_sizes buffers_for(std::int64_t samples) const override {
    return {.saved = samples * inputs(), .kept = samples * outputs()};
  }
  double operations() const override {
    return 2.0 * static_cast<double>(inputs() * outputs());
  }

  void forward(const user_pass& p) const override {
    std::memcpy(p.saved, p.x,
                static_cast<std::size_t>(p.samples * inputs()) * sizeof(float));
    for (std::int64_t r = 0; r < p.samples; ++r)
      for (std::int64_t o = 0; o < outputs(); ++o) {
        double sum = p.parameters[1][o];
        for (std::int64_t i = 0; i < inputs(); ++i)
          sum += static_cast<double>(p.x[r * inputs() + i])
                 * p.parameters[0][o * inputs() + i];
        p.y[r * outputs() + o] = static_cast<float>(sum);
      }
  }

  void input_gradient(const user_pass& p) const override {
    std::memcpy(p.kept, p.dy,
                static_cast<std::size_t>(p.samples * outputs()) * sizeof(float));
    for (std::int64_t r = 0; r < p.samples && p.dx != nullptr; ++r)
      for (std::int64_t i = 0; i < inputs(); ++i) {
        double sum = 0;
        for (std::int64_t o = 0; o < outputs(); ++o)
          sum += static_cast<double>(p.dy[r * outputs() + o])
                 * p.parameters[0][o * inputs() + i];
        p.dx[r * inputs() + i] = static_cast<float>(sum);
      }
  }

  void weight_gradient(const user_pass& p) const override {
    for (std::int64_t o = 0; o < outputs(); ++o) {
      float& bias = p.gradients[1][o];
      bias = p.adds ? bias : 0;
      for (std::int64_t i = 0; i < inputs(); ++i) {
        float& weight = p.gradients[0][o * inputs() + i];
        weight = p.adds ? weight : 0;
        for (std::int64_t r = 0; r < p.samples; ++r)
          weight += p.kept[r * outputs() + o] * p.saved[r * inputs() + i];
      }
      for (std::int64_t r = 0; r < p.samples; ++r)
        bias += p.kept[r * outputs() + o];
    }
  }
};

inline training_job
images_job(std::vector<std::shared_ptr<const network_layer>> layers) {
  auto job = small_job();
  job.model = user_network{.layers = std::move(layers)};
  job.data = *open_data("synthetic", {.model = "mlp"}, 5);
  return job;
}

} // namespace embedded
