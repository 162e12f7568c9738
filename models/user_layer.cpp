// SPDX-License-Identifier: BSD-3-Clause
#include "models/user_layer.hpp"

#include "models/layers/linear.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

namespace troupe {

namespace {

constexpr std::int64_t most_values = std::int64_t{1} << 40; // of any array

std::vector<parameter> parameters_of(const std::vector<layer_tensor>& tensors) {
  std::vector<parameter> result;
  for (const auto& t : tensors)
    result.push_back({t.name, t.dims, t.begins, t.scale});
  return result;
}

/// Checks the numbers of inputs and outputs. \throws std::invalid_argument
void check_ends(std::int64_t inputs, std::int64_t outputs) {
  if (inputs < 1 || outputs < 1)
    throw std::invalid_argument("a layer has at least one input and one output");
  if (inputs > most_values / outputs)
    throw std::invalid_argument("a layer's inputs times outputs are more than 2^40");
}

/// A user's layer in the form that stages use.
class user_layer_adapter : public layer<float> {
public:
  user_layer_adapter(std::shared_ptr<const network_layer> owner,
                     const user_layer& implementation)
    : layer<float>(parameters_of(implementation.parameters()),
                   {implementation.inputs()}, {implementation.outputs()}),
      owner_(std::move(owner)),
      implementation_(implementation) {
    // nop
  }

  layer_sizes sizes(std::int64_t samples, int) const override {
    const auto buffers = implementation_.buffers_for(samples);
    if (std::min({buffers.saved, buffers.kept, buffers.scratch}) < 0
        || std::max({buffers.saved, buffers.kept, buffers.scratch}) > most_values)
      throw std::invalid_argument(
        "a layer's buffers_for returns a negative number of values, "
        "or more than 2^40");
    return {buffers.saved, buffers.kept, buffers.scratch};
  }

  double operations() const override { return implementation_.operations(); }

  void forward(const frame<float>& f, int) const override {
    implementation_.forward(pass_of(f, pass_kind::forward));
  }
  void input_gradient(const frame<float>& f, int) const override {
    implementation_.input_gradient(pass_of(f, pass_kind::input_gradient));
  }
  void weight_gradient(const frame<float>& f) const override {
    implementation_.weight_gradient(pass_of(f, pass_kind::weight_gradient));
  }

private:
  using pass_kind = layer_pass;

  user_pass pass_of(const frame<float>& f, pass_kind kind) const {
    user_pass result{.samples = f.samples,
                     .threads = f.compute_stream->threads(),
                     .x = static_cast<const float*>(f.x),
                     .tokens = f.tokens,
                     .y = static_cast<float*>(f.y),
                     .dy = static_cast<const float*>(f.dy),
                     .dx = static_cast<float*>(f.dx),
                     .saved = f.saved,
                     .kept = f.kept,
                     .scratch = f.scratch,
                     .parameters = {},
                     .gradients = {},
                     .adds = f.beta != 0};
    for (std::size_t i = 0; i < parameters().size(); ++i) {
      result.parameters.push_back(weight(f, i));
      if (kind == pass_kind::weight_gradient)
        result.gradients.push_back(gradient(f, i));
    }
    return result;
  }

  std::shared_ptr<const network_layer> owner_; // keeps the user's layer alive
  const user_layer& implementation_;
};

/// A builtin layer in a user's network.
class builtin_layer : public network_layer {
public:
  explicit builtin_layer(std::shared_ptr<const layer<float>> builtin)
    : builtin_(std::move(builtin)) {
    // nop
  }

  std::shared_ptr<const layer<float>>
  as_layer(const std::shared_ptr<const network_layer>&) const override {
    return builtin_;
  }

private:
  std::shared_ptr<const layer<float>> builtin_;
};

} // namespace

user_layer::user_layer(std::vector<layer_tensor> parameters, std::int64_t inputs,
                       std::int64_t outputs)
  : parameters_(std::move(parameters)), inputs_(inputs), outputs_(outputs) {
  check_ends(inputs, outputs);
  std::set<std::string> names;
  for (const auto& tensor : parameters_) {
    if (!names.insert(tensor.name).second)
      throw std::invalid_argument("a layer has two parameters called '" + tensor.name
                                  + "'");
    std::int64_t values = 1;
    for (const auto dim : tensor.dims) {
      if (dim < 1)
        throw std::invalid_argument("parameter '" + tensor.name
                                    + "' has a dim below 1");
      if (dim > most_values / values)
        throw std::invalid_argument("parameter '" + tensor.name
                                    + "' has more than 2^40 values");
      values *= dim;
    }
  }
}

std::shared_ptr<const layer<float>>
user_layer::as_layer(const std::shared_ptr<const network_layer>& self) const {
  return std::make_shared<user_layer_adapter>(self, *this);
}

std::shared_ptr<const network_layer> linear(const std::string& name, std::int64_t in,
                                            std::int64_t out, bool rectified) {
  check_ends(in, out);
  return std::make_shared<builtin_layer>(linear_layer<float>(name, in, out, rectified));
}

} // namespace troupe
