// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/checked_data.hpp"

#include <stdexcept>
#include <utility>

namespace troupe {

namespace {

class checked_data : public data_set {
public:
  checked_data(std::shared_ptr<const data_set> data, const network<float>& whole)
    : data_(std::move(data)),
      identity_(data_->identity()),
      inputs_(whole.layers.front()->input()),
      labels_(whole.rows),
      classes_(whole.classes),
      words_(whole.options.model == "own" ? 0 : whole.options.words) {
    // nop
  }

  std::optional<sample_shape> one_sample() const override {
    return data_->one_sample();
  }
  void training(std::int64_t index, const sample_view& to) const override {
    data_->training(index, to);
    check(index, to);
  }
  std::int64_t evaluation_size() const override { return data_->evaluation_size(); }
  void evaluation(std::int64_t index, const sample_view& to) const override {
    data_->evaluation(index, to);
    check(index, to);
  }
  bool evaluates_training_data() const override {
    return data_->evaluates_training_data();
  }
  std::optional<std::int64_t> epoch() const override { return data_->epoch(); }
  std::optional<double> loss_floor() const override { return data_->loss_floor(); }
  std::optional<data_identity> identity() const override { return identity_; }
  std::string description() const override { return data_->description(); }

private:
  void check(std::int64_t index, const sample_view& to) const {
    check_values(index, "label", to.labels, labels_, classes_);
    if (words_ > 0 && to.tokens != nullptr)
      check_values(index, "token", to.tokens, inputs_, words_);
  }

  static void check_values(std::int64_t index, const std::string& kind,
                           const std::int32_t* values, std::int64_t count,
                           std::int64_t end) {
    for (std::int64_t i = 0; i < count; ++i)
      if (values[i] < 0 || values[i] >= end)
        throw std::out_of_range("sample " + std::to_string(index) + " has " + kind + " "
                                + std::to_string(values[i]) + ": the model allows 0 to "
                                + std::to_string(end - 1));
  }

  std::shared_ptr<const data_set> data_;
  std::optional<data_identity> identity_;
  std::int64_t inputs_, labels_, classes_, words_;
};

} // namespace

std::shared_ptr<const data_set> checked(std::shared_ptr<const data_set> data,
                                        const network<float>& whole) {
  return std::make_shared<checked_data>(std::move(data), whole);
}

/// The reason why samples do not fit a network, as one sentence; empty if the samples
/// fit, or the data set does not describe samples.
std::string sample_shape_error(const data_set& data, const network<float>& whole) {
  const auto shape = data.one_sample();
  const auto inputs = whole.layers.front()->input();
  if (!shape
      || (shape->inputs == inputs && shape->labels == whole.rows
          && shape->reads_tokens == whole.reads_tokens))
    return {};
  const auto text = [](std::int64_t count, bool tokens, std::int64_t labels) {
    return std::to_string(count) + (tokens ? " tokens and " : " pixels and ")
           + std::to_string(labels) + (labels == 1 ? " label" : " labels");
  };
  return "a sample of the data is "
         + text(shape->inputs, shape->reads_tokens, shape->labels)
         + ", but the model takes " + text(inputs, whole.reads_tokens, whole.rows);
}

} // namespace troupe
