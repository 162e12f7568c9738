// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/evaluation_data.hpp"

#include <array>
#include <utility>

namespace troupe {

namespace {

class two_data_sets : public data_set {
public:
  two_data_sets(std::shared_ptr<const data_set> training,
                std::shared_ptr<const data_set> evaluation, bool shares_samples)
    : training_(std::move(training)),
      evaluation_(std::move(evaluation)),
      shares_samples_(shares_samples) {
    // nop
  }

  std::optional<sample_shape> one_sample() const override {
    return training_->one_sample();
  }

  void training(std::int64_t index, const sample_view& to) const override {
    training_->training(index, to);
  }

  std::int64_t evaluation_size() const override {
    return evaluation_->evaluation_size();
  }

  void evaluation(std::int64_t index, const sample_view& to) const override {
    evaluation_->evaluation(index, to);
  }

  /// True also if both data sets have copies of one text, as each data set then uses
  /// the whole text.
  bool evaluates_training_data() const override {
    if (shares_samples_)
      return true;
    const auto trained = training_->identity(), evaluated = evaluation_->identity();
    const auto shape = training_->one_sample();
    return shape && shape->reads_tokens && trained && evaluated && trained->bytes > 0
           && trained->bytes == evaluated->bytes
           && trained->checksum == evaluated->checksum;
  }

  std::optional<std::int64_t> epoch() const override { return training_->epoch(); }

  std::optional<double> loss_floor() const override {
    return evaluation_->loss_floor();
  }

  std::optional<data_identity> identity() const override {
    const auto trained = training_->identity(), evaluated = evaluation_->identity();
    if (!trained || !evaluated)
      return {};
    data_identity result{trained->kind + ", evaluated on " + evaluated->kind,
                         trained->bytes + evaluated->bytes, 0};
    if (result.bytes == 0)
      return result;
    content_sum sum;
    const std::array checksums{trained->checksum, evaluated->checksum};
    sum.add(std::as_bytes(std::span{checksums}));
    result.checksum = sum.identity("").checksum;
    return result;
  }

  std::string description() const override {
    return training_->description() + "; evaluated on " + evaluation_->description();
  }

private:
  std::shared_ptr<const data_set> training_, evaluation_;
  bool shares_samples_;
};

} // namespace

std::shared_ptr<const data_set>
with_evaluation_data(std::shared_ptr<const data_set> training,
                     std::shared_ptr<const data_set> evaluation, bool shares_samples) {
  return std::make_shared<two_data_sets>(std::move(training), std::move(evaluation),
                                         shares_samples);
}

} // namespace troupe
