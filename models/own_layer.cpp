// SPDX-License-Identifier: BSD-3-Clause
#include "models/own_layer.hpp"

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
    throw std::invalid_argument("a layer is larger than any memory");
}

/// A user's layer in the form that stages use.
class layer_of_own : public layer<float> {
public:
  layer_of_own(std::shared_ptr<const network_layer> owner, const own_layer& what)
    : layer<float>(parameters_of(what.parameters()), {what.inputs()}, {what.outputs()}),
      owner_(std::move(owner)),
      what_(what) {
    // nop
  }

  layer_sizes sizes(std::int64_t samples, int) const override {
    const auto room = what_.room_for(samples);
    if (std::min({room.saved, room.kept, room.scratch}) < 0
        || std::max({room.saved, room.kept, room.scratch}) > most_values)
      throw std::invalid_argument("a layer's room_for gives less than nothing, or more "
                                  "than any memory");
    return {room.saved, room.kept, room.scratch};
  }

  double operations() const override { return what_.operations(); }

  void forward(const frame<float>& f, int) const override {
    what_.forward(pass_of(f, pass_kind::forward));
  }
  void input_gradient(const frame<float>& f, int) const override {
    what_.input_gradient(pass_of(f, pass_kind::input_gradient));
  }
  void weight_gradient(const frame<float>& f) const override {
    what_.weight_gradient(pass_of(f, pass_kind::weight_gradient));
  }

private:
  using pass_kind = layer_pass;

  own_pass pass_of(const frame<float>& f, pass_kind what) const {
    own_pass result{.samples = f.samples,
                    .threads = f.on->threads(),
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
      if (what == pass_kind::weight_gradient)
        result.gradients.push_back(gradient(f, i));
    }
    return result;
  }

  std::shared_ptr<const network_layer> owner_; // keeps the user's layer alive
  const own_layer& what_;
};

/// A builtin layer in a user's network.
class builtin_layer : public network_layer {
public:
  explicit builtin_layer(std::shared_ptr<const layer<float>> what)
    : what_(std::move(what)) {
    // nop
  }

  std::shared_ptr<const layer<float>>
  as_layer(const std::shared_ptr<const network_layer>&) const override {
    return what_;
  }

private:
  std::shared_ptr<const layer<float>> what_;
};

} // namespace

own_layer::own_layer(std::vector<layer_tensor> parameters, std::int64_t inputs,
                     std::int64_t outputs)
  : parameters_(std::move(parameters)), inputs_(inputs), outputs_(outputs) {
  check_ends(inputs, outputs);
  std::set<std::string> names;
  for (const auto& one : parameters_) {
    if (!names.insert(one.name).second)
      throw std::invalid_argument("a layer has two parameters called '" + one.name
                                  + "'");
    std::int64_t values = 1;
    for (const auto dim : one.dims) {
      if (dim < 1)
        throw std::invalid_argument("parameter '" + one.name + "' has a dim below 1");
      if (dim > most_values / values)
        throw std::invalid_argument("parameter '" + one.name
                                    + "' has more values than any memory");
      values *= dim;
    }
  }
}

std::shared_ptr<const layer<float>>
own_layer::as_layer(const std::shared_ptr<const network_layer>& self) const {
  return std::make_shared<layer_of_own>(self, *this);
}

std::shared_ptr<const network_layer> linear(const std::string& name, std::int64_t in,
                                            std::int64_t out, bool rectified) {
  check_ends(in, out);
  return std::make_shared<builtin_layer>(linear_layer<float>(name, in, out, rectified));
}

} // namespace troupe
