// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/data_set.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace tiny {

using namespace troupe;

/// A data set that calls a function at one sample.
class brittle_data : public data_set {
public:
  brittle_data(std::shared_ptr<const data_set> good, std::int64_t until,
               std::function<void()> happens)
    : good_(std::move(good)), until_(until), happens_(std::move(happens)) {
    // nop
  }

  void training(std::int64_t index, const sample_view& to) const override {
    if (index == until_)
      happens_();
    good_->training(index, to);
  }

  std::int64_t evaluation_size() const override { return 0; }
  void evaluation(std::int64_t, const sample_view&) const override {}
  std::string description() const override { return "brittle"; }

private:
  std::shared_ptr<const data_set> good_;
  std::int64_t until_;
  std::function<void()> happens_;
};

} // namespace tiny
