// SPDX-License-Identifier: BSD-3-Clause
// A network with a user's layers: a Swish activation with a parameter, between troupe's
// linear layers. The network is trained in one stage and in three. The loss of the
// pipeline equals the loss of one device to the bit, as for troupe's layers.

#include <troupe/troupe.hpp>

#include <cmath>
#include <iostream>

namespace {

/// y = a x sigmoid(x), with a parameter a for each value of a sample. (Ramachandran et
/// al., "Searching for Activation Functions", 2017; here with a gain.)
class swish : public troupe::user_layer {
public:
  swish(const std::string& name, std::int64_t width)
    : user_layer(
      {{.name = name + ".gain", .dims = {width}, .begins = troupe::beginning::ones}},
      width, width) {}

  double operations() const override { return 6.0 * static_cast<double>(inputs()); }

  void forward(const troupe::user_pass& p) const override {
    for (std::int64_t i = 0; i < p.samples * inputs(); ++i)
      p.y[i] = p.parameters[0][i % inputs()] * value(p.x[i]);
  }

  void input_gradient(const troupe::user_pass& p) const override {
    if (p.dx == nullptr) // the first layer of a network
      return;
    for (std::int64_t i = 0; i < p.samples * inputs(); ++i)
      p.dx[i] = p.dy[i] * p.parameters[0][i % inputs()] * slope(p.x[i]);
  }

  void weight_gradient(const troupe::user_pass& p) const override {
    for (std::int64_t column = 0; column < inputs(); ++column) {
      float sum = p.adds ? p.gradients[0][column] : 0;
      for (std::int64_t row = 0; row < p.samples; ++row) {
        const auto i = row * inputs() + column;
        sum += p.dy[i] * value(p.x[i]);
      }
      p.gradients[0][column] = sum;
    }
  }

private:
  static float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
  static float value(float x) { return x * sigmoid(x); }
  static float slope(float x) { return sigmoid(x) + value(x) * (1 - sigmoid(x)); }
};

} // namespace

int main() {
  if (const auto wrong = troupe::check_layer(swish{"act", 5}); !wrong.empty()) {
    std::cerr << wrong << '\n';
    return 1;
  }
  troupe::user_network net;
  net.layers = {troupe::linear("fc1", 28 * 28, 64), std::make_shared<swish>("act1", 64),
                troupe::linear("fc2", 64, 64), std::make_shared<swish>("act2", 64),
                troupe::linear("fc3", 64, 10)};
  const auto data = troupe::open_data("synthetic", {.model = "mlp"}, 1);
  if (!data) {
    std::cerr << data.error() << '\n';
    return 1;
  }
  troupe::training_job job{
    .model = net, .data = *data, .pipeline_schedule = troupe::gpipe()};
  job.steps = 60;
  job.batch = 64;
  double last = 0;
  for (const int stages : {1, 3}) {
    job.stages = stages;
    const auto result = troupe::train(job);
    if (!result || result->outcome != troupe::ending::finished) {
      std::cerr << (result ? result->failure : result.error()) << '\n';
      return 1;
    }
    std::cout << stages << (stages == 1 ? " stage" : " stages") << ": loss "
              << result->loss.front() << " to " << result->loss.back() << '\n';
    if (stages > 1 && result->loss.back() != last)
      return 1; // the split must change no bit
    last = result->loss.back();
    if (!(last < result->loss.front()))
      return 1;
  }
  return 0;
}
