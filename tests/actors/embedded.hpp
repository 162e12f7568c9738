#pragma once

#include "actors/embedding/training.hpp"
#include "models/data/open_data.hpp"
#include "schedules/catalog/catalog.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>

/// Jobs small enough for tests.
namespace embedded {

using namespace troupe;

inline const model_options small_gpt{"gpt", 4, 8, 2, 4, 11};

inline training_job small_job(const schedule& how = one_f_one_b()) {
  training_job job{
    .model = small_gpt, .data = *open_data("synthetic", small_gpt, 5), .how = how};
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
  REQUIRE(result->how == ending::finished);
  return *result;
}

inline std::string refusal_of(const training_job& job) {
  const auto result = train(job);
  return result ? "" : result.error();
}

} // namespace embedded
