// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/step_validator.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>

namespace troupe {

namespace {

double norm_of(std::span<const float> values) {
  double sum = 0;
  for (const auto v : values)
    sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}

/// The norm of the difference of two arrays, and the index of the largest difference.
struct apart {
  apart(const float* a, const float* b, std::int64_t n) {
    double most = -1;
    for (std::int64_t i = 0; i < n; ++i) {
      const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
      norm += d * d;
      if (!(d <= most)) { // also true for NaN
        most = d;
        where = i;
      }
    }
    norm = std::sqrt(norm);
  }

  double norm = 0;
  std::int64_t where = 0;
};

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

} // namespace

bool sums_elsewhere(const run_plan& plan) {
  return plan.mesh[axis::tensor] > 1 || plan.mesh[axis::expert] > 1;
}

std::size_t step_validator::first_layer(int stage) const {
  return static_cast<std::size_t>(
    plan_.work->first_layers[static_cast<std::size_t>(stage)]);
}

void step_validator::note(const std::string& error) {
  if (error_.empty())
    error_ = error;
}

/// Returns the run's parameters and gradients of a version. If the run lacks the
/// version or one of its layers, notes an error and returns null.
const kept_version* step_validator::run_of(int version) {
  const auto v = static_cast<std::size_t>(version);
  if (v > result_.versions.size()) {
    note("the run made " + std::to_string(result_.versions.size())
         + " versions, and no version " + std::to_string(version));
    return nullptr;
  }
  const auto& kept = result_.versions[v - 1];
  const auto& layers = plan_.work->whole.layers;
  const auto is_there = [&](const std::vector<std::vector<float>>& buckets,
                            std::size_t l) {
    return l < buckets.size() && std::ssize(buckets[l]) == layers[l]->bucket();
  };
  for (std::size_t l = 0; l < layers.size(); ++l)
    if (!is_there(kept.parameters, l) || !is_there(kept.gradients, l)) {
      note("version " + std::to_string(version) + " of the run lacks layer "
           + std::to_string(l));
      return nullptr;
    }
  return &kept;
}

void step_validator::summed(int stage, int version,
                            const std::vector<float*>& gradients) {
  const auto* const run = run_of(version);
  if (run == nullptr)
    return;
  const auto first = first_layer(stage);
  double squares = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    squares += std::pow(norm_of(run->gradients[first + i]), 2);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto& layer = *plan_.work->whole.layers[first + i];
    const auto& of_run = run->gradients[first + i];
    for (const auto& p : layer.parameters())
      judge_gradients(version, first + i, p, of_run.data() + p.offset,
                      gradients[i] + p.offset, std::sqrt(squares));
    std::ranges::copy(of_run, gradients[i]);
  }
}

void step_validator::judge_gradients(int version, std::size_t layer, const parameter& p,
                                     const float* run, const float* loop,
                                     double stage_norm) {
  const apart difference{run, loop, p.values()};
  if (difference.norm == 0)
    return;
  const double norm = norm_of({loop, static_cast<std::size_t>(p.values())});
  const double allowed = allowed_ * std::max(norm, 0.01 * stage_norm);
  const double ratio = difference.norm / allowed;
  furthest_ = std::max(furthest_, ratio);
  if (!(ratio <= 1))
    note("at update " + std::to_string(version) + ", "
         + difference_at(*plan_.work, "gradient of", layer, p, difference.where,
                         run[difference.where], loop[difference.where])
         + ", " + short_number(ratio) + " times the difference that rounding explains");
}

/// Returns the run's parameters of a layer in a version; version 0 has the initial
/// values.
std::vector<float> step_validator::parameters_of(int version, std::size_t layer) const {
  if (version > 0)
    return result_.versions[static_cast<std::size_t>(version) - 1].parameters[layer];
  std::vector<float> result(
    static_cast<std::size_t>(plan_.work->whole.layers[layer]->bucket()));
  plan_.work->weights(layer, result.data());
  return result;
}

void step_validator::updated(int stage, int version,
                             const std::vector<float*>& parameters) {
  const auto* const run = run_of(version);
  if (run == nullptr || (version > 1 && run_of(version - 1) == nullptr))
    return;
  const auto first = first_layer(stage);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto& of_run = run->parameters[first + i];
    const auto previous = parameters_of(version - 1, first + i);
    for (const auto& p : plan_.work->whole.layers[first + i]->parameters())
      judge_parameters(version, first + i, p, of_run.data() + p.offset,
                       parameters[i] + p.offset, previous.data() + p.offset);
    std::ranges::copy(of_run, parameters[i]);
  }
}

void step_validator::judge_parameters(int version, std::size_t layer,
                                      const parameter& p, const float* run,
                                      const float* loop, const float* previous) {
  // Tensor shards sum the norm in another order. The norm's last bits scale the step,
  // and the resulting parameters are rounded.
  constexpr double of_step = 1e-6, of_value = 1.2e-7;
  const apart difference{run, loop, p.values()};
  if (difference.norm == 0)
    return;
  const double step = apart{run, previous, p.values()}.norm,
               value = norm_of({run, static_cast<std::size_t>(p.values())});
  if (plan_.mesh[axis::tensor] > 1 && plan_.work->optimizer.clip > 0
      && difference.norm <= of_step * step + of_value * value)
    return;
  const auto i = difference.where;
  note("at update " + std::to_string(version) + ", "
       + difference_at(*plan_.work, "parameter", layer, p, i, run[i], loop[i])
       + ", the value that the plain update computes from the run's gradients");
}

proof step_validator::judged(const std::string& name, const trained& loop) {
  constexpr double of_loss = 1e-5;
  if (loop.loss.size() != result_.loss.size())
    note("the run has " + std::to_string(result_.loss.size()) + " losses instead of "
         + std::to_string(loop.loss.size()));
  for (std::size_t i = 0; i < std::min(loop.loss.size(), result_.loss.size()); ++i)
    if (!(std::abs(loop.loss[i] - result_.loss[i]) <= of_loss * std::abs(loop.loss[i])))
      note("loss of minibatch " + std::to_string(i) + " is " + exact(result_.loss[i])
           + " instead of " + exact(loop.loss[i]));
  if (loop.parameters != result_.parameters)
    note("the run's final parameters differ from its last version");
  return troupe::judged(name, error_,
                        "step by step, gradients within "
                          + short_number(furthest_ * allowed_)
                          + " of their norms; updates taken from the run");
}

} // namespace troupe
