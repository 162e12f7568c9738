// SPDX-License-Identifier: BSD-3-Clause
// LeNet-5 compared with a definition: loops over pixels in double, with the parameter
// names of the model's file.

#include "tests/models/network_run.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace troupe::lenet_test {

namespace {

using values = std::vector<double>;

/// C planes of adjacent values.
struct planes {
  std::size_t count, side;
  values at;

  double& operator()(std::size_t c, std::size_t h, std::size_t w) {
    return at[(c * side + h) * side + w];
  }
};

planes framed_by_zeros(planes x, std::size_t rows) {
  planes result{x.count, x.side + 2 * rows, {}};
  result.at.resize(result.count * result.side * result.side);
  for (std::size_t c = 0; c < x.count; ++c)
    for (std::size_t h = 0; h < x.side; ++h)
      for (std::size_t w = 0; w < x.side; ++w)
        result(c, h + rows, w + rows) = x(c, h, w);
  return result;
}

/// 5 by 5 filters, ReLU, and the largest of every 2 by 2 values.
planes convolved_and_pooled(planes x, const values& w, const values& bias) {
  planes y{bias.size(), (x.side - 4) / 2, {}};
  y.at.resize(y.count * y.side * y.side);
  for (std::size_t o = 0; o < y.count; ++o)
    for (std::size_t h = 0; h < 2 * y.side; ++h)
      for (std::size_t v = 0; v < 2 * y.side; ++v) {
        double sum = bias[o];
        for (std::size_t c = 0; c < x.count; ++c)
          for (std::size_t i = 0; i < 5; ++i)
            for (std::size_t j = 0; j < 5; ++j)
              sum += w[((o * x.count + c) * 5 + i) * 5 + j] * x(c, h + i, v + j);
        auto& pooled = y(o, h / 2, v / 2);
        pooled = std::max(pooled, sum); // begins at 0, as after a ReLU
      }
  return y;
}

values linear(const values& x, const values& w, const values& bias, bool relu) {
  auto y = bias;
  for (std::size_t o = 0; o < y.size(); ++o) {
    for (std::size_t i = 0; i < x.size(); ++i)
      y[o] += w[o * x.size() + i] * x[i];
    y[o] = relu ? std::max(y[o], 0.0) : y[o];
  }
  return y;
}

/// The sum of the cross-entropies over the run's samples.
double plain_loss(const network<double>& whole, const network_run& run,
                  std::size_t padding) {
  std::map<std::string, values> named;
  for (std::size_t l = 0; l < whole.layers.size(); ++l)
    for (const auto& p : whole.layers[l]->parameters()) {
      const auto first = run.parameters[l].begin() + p.offset;
      named[p.name] = values(first, first + p.values());
    }
  double loss = 0;
  for (std::ptrdiff_t n = 0; n < samples; ++n) {
    const auto first = run.pixels.begin() + n * 784;
    planes x{1, 28, values(first, first + 784)};
    x = framed_by_zeros(x, padding);
    for (const std::string name : {"conv1", "conv2"})
      x = convolved_and_pooled(x, named.at(name + ".weight"), named.at(name + ".bias"));
    auto line = x.at;
    for (const std::string name : {"fc1", "fc2", "fc3"})
      line = linear(line, named.at(name + ".weight"), named.at(name + ".bias"),
                    name != "fc3");
    double sum = 0;
    for (const double logit : line)
      sum += std::exp(logit);
    const auto label = run.labels[static_cast<std::size_t>(n)];
    loss += std::log(sum) - line.at(static_cast<std::size_t>(label));
  }
  return loss;
}

} // namespace

TEST_CASE("lenet and lenet5 are the definition of LeNet-5, and so are their gradients",
          "[network]") {
  const std::string name = GENERATE("lenet", "lenet5");
  const std::size_t padding = name == "lenet5" ? 2 : 0;
  const auto whole = *make_network<double>({name});
  network_run run{whole, *cut(whole, 1, {}), false};
  for (auto& bucket : run.parameters)
    for (auto& value : bucket)
      value *= 0.3; // logits small enough for a softmax that is not saturated
  const double loss = run.run(), expected = plain_loss(whole, run, padding);
  CHECK(std::abs(loss - expected) < 1e-10 * expected);
  const auto gradients = run.gradients;
  for (std::size_t l = 0; l < whole.layers.size(); ++l)
    for (const auto& p : whole.layers[l]->parameters())
      for (const auto i : {std::int64_t{0}, p.values() / 3, p.values() - 1}) {
        CAPTURE(name, p.name, i);
        auto& value = run.parameters[l][static_cast<std::size_t>(p.offset + i)];
        const double saved = value, h = 1e-6;
        value = saved + h;
        const double above = plain_loss(whole, run, padding);
        value = saved - h;
        const double below = plain_loss(whole, run, padding);
        value = saved;
        const double slope = (above - below) / (2 * h);
        CHECK(std::abs(gradients[l][static_cast<std::size_t>(p.offset + i)] - slope)
              < 1e-6 * std::max(1.0, std::abs(slope)));
      }
}

} // namespace troupe::lenet_test
