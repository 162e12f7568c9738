// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data_identity.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// What one sample is made of.
struct sample_shape {
  std::int64_t inputs;       ///< Tokens, or pixels.
  std::int64_t labels = 1;   ///< One for each prediction.
  bool reads_tokens = false; ///< Inputs are tokens.
};

/// Where the values of one sample go. A data set fills tokens or pixels, as its kind
/// is.
struct sample_view {
  std::int32_t* tokens = nullptr; ///< (inputs), from 0 to below the vocabulary
  float* pixels = nullptr;        ///< (inputs); of images from 0 to 1
  std::int32_t* labels = nullptr; ///< (labels), from 0 to below the classes

  /// Another sample in the same arrays. \param i how many behind this one
  /// \param input,answers values a sample
  sample_view behind(std::int64_t i, std::int64_t input, std::int64_t answers) const {
    return {tokens == nullptr ? nullptr : tokens + i * input,
            pixels == nullptr ? nullptr : pixels + i * input,
            labels == nullptr ? nullptr : labels + i * answers};
  }
};

/// Samples to train and to evaluate on. A sample depends on the seed and its index
/// alone, so that every schedule sees the same data. Thread-safe: nothing changes after
/// making. What it throws fails the run with its text; before the run it is train()'s
/// error.
class data_set {
public:
  virtual ~data_set() = default;

  /// What its samples are. A job refuses a model that takes other ones. Absent: it does
  /// not say, and nobody looks.
  virtual std::optional<sample_shape> one_sample() const { return {}; }

  /// Writes sample `index` of the run, however long it is.
  virtual void training(std::int64_t index, const sample_view& to) const = 0;

  /// How many samples are held out, and one of them.
  virtual std::int64_t evaluation_size() const = 0;
  virtual void evaluation(std::int64_t index, const sample_view& to) const = 0;

  /// Whether these are samples that training sees too, so that how well it does there
  /// says nothing about others.
  virtual bool evaluates_training_data() const { return false; }

  /// Samples in one pass over the training data; absent if there is no end to them.
  virtual std::optional<std::int64_t> epoch() const { return {}; }

  /// The loss, in nats a prediction, that no model can beat on average, where it is
  /// known.
  virtual std::optional<double> loss_floor() const { return {}; }

  /// The identity of its samples, by which a run refuses to go on with other data.
  /// Absent: unknown, and nothing is compared.
  virtual std::optional<data_identity> identity() const { return {}; }

  /// One line for people: what it is, how large.
  virtual std::string description() const = 0;
};

} // namespace troupe
