// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/layer.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace tiny {

using namespace troupe;

/// A layer whose forward calls a function at one sample.
class brittle_layer : public layer<float> {
public:
  brittle_layer(std::shared_ptr<const layer<float>> good, std::int64_t until,
                std::function<void()> happens)
    : layer(good->parameters(), {good->input()}, {good->output()}),
      good_(std::move(good)),
      until_(until),
      happens_(std::move(happens)) {
    // nop
  }

  layer_sizes sizes(std::int64_t samples, int threads) const override {
    return good_->sizes(samples, threads);
  }
  double operations() const override { return good_->operations(); }

  void forward(const frame<float>& f, int piece) const override {
    if (f.first <= until_ && until_ < f.first + f.samples)
      happens_();
    good_->forward(f, piece);
  }
  void input_gradient(const frame<float>& f, int piece) const override {
    good_->input_gradient(f, piece);
  }
  void weight_gradient(const frame<float>& f) const override {
    good_->weight_gradient(f);
  }

private:
  std::shared_ptr<const layer<float>> good_;
  std::int64_t until_;
  std::function<void()> happens_;
};

} // namespace tiny
