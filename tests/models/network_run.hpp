// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/slice.hpp"
#include "tests/kernels/numbers.hpp"

namespace troupe {

/// Samples of every run.
constexpr std::int64_t samples = 3;

inline std::vector<double> random_bucket(const layer<double>& l, unsigned seed) {
  auto result = random_values<double>(l.bucket(), seed);
  for (auto& x : result)
    x *= 0.5;
  return result;
}

/// A whole network in double, cut into slices; runs forward and backward on one
/// microbatch.
struct network_run {
  network_run(const network<double>& whole, const std::vector<int>& first_layers,
              bool split_backward)
    : slices(slice<double>::cut_at(whole, first_layers, 1)), split(split_backward) {
    for (const auto& l : whole.layers) {
      parameters.push_back(random_bucket(*l, static_cast<unsigned>(parameters.size())));
      gradients.emplace_back(parameters.back().size());
    }
    tokens = random_labels(samples * slices[0].layers()[0]->input(), 11, 8);
    pixels = random_values<double>(samples * slices[0].layers()[0]->input(), 9);
    labels = random_labels(samples * whole.rows, static_cast<int>(whole.classes), 10);
  }

  double run() {
    std::vector<pass<double>> passes;
    std::vector<std::vector<double>> buffers;
    const auto memory = [&](std::int64_t values) {
      return buffers.emplace_back(static_cast<std::size_t>(values)).data();
    };
    double loss = 0;
    std::size_t layer = 0;
    const void* x = pixels.data();
    for (const auto& s : slices) {
      const auto sizes = s.sizes(samples);
      pass<double> p;
      p.samples = samples;
      p.tokens = tokens.data();
      p.labels = labels.data();
      p.input = x;
      p.output = memory(sizes.output);
      p.stash = memory(sizes.stash);
      p.input_gradient = s.is_first() ? nullptr : memory(sizes.input);
      p.kept = memory(sizes.kept);
      p.scratch = memory(sizes.scratch);
      p.compute_stream = &on;
      for (std::size_t i = 0; i < s.layers().size(); ++i, ++layer) {
        p.parameters.push_back(parameters[layer].data());
        p.gradients.push_back(gradients[layer].data());
      }
      loss_sum part;
      s.forward(p, part);
      loss += part.loss;
      x = p.output;
      passes.push_back(p);
    }
    for (auto s = slices.size(); s-- > 0;) {
      if (s + 1 < slices.size())
        passes[s].output_gradient = passes[s + 1].input_gradient;
      if (!split)
        slices[s].backward(passes[s]);
      else
        slices[s].input_gradient(passes[s]);
    }
    if (split)
      for (std::size_t s = 0; s < slices.size(); ++s)
        slices[s].weight_gradient(passes[s]);
    return loss;
  }

  std::vector<slice<double>> slices;
  bool split;
  std::vector<std::vector<double>> parameters, gradients;
  std::vector<std::int32_t> tokens, labels;
  std::vector<double> pixels;
  stream on;
};

} // namespace troupe
