// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The interface of data sets.

#include "models/data_identity.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

/// The contents of one sample.
struct sample_shape {
  std::int64_t inputs;       ///< Tokens, or pixels.
  std::int64_t labels = 1;   ///< One for each prediction.
  bool reads_tokens = false; ///< Inputs are tokens.
};

/// The arrays of one sample's values, owned by the caller. A data set fills tokens or
/// pixels, by the data set's kind.
struct sample_view {
  std::int32_t* tokens = nullptr; ///< (inputs), from 0 to below the vocabulary
  float* pixels = nullptr;        ///< (inputs); of images from 0 to 1
  std::int32_t* labels = nullptr; ///< (labels), from 0 to below the classes

  /// Returns the view of another sample, in arrays that hold samples one after another.
  /// \param i position of the other sample relative to this sample
  /// \param input input values of a sample
  /// \param answers labels of a sample
  sample_view offset_by(std::int64_t i, std::int64_t input,
                        std::int64_t answers) const {
    return {tokens == nullptr ? nullptr : tokens + i * input,
            pixels == nullptr ? nullptr : pixels + i * input,
            labels == nullptr ? nullptr : labels + i * answers};
  }
};

/// Samples to train and to evaluate on. A sample depends on the seed and the sample's
/// index alone, so that every schedule sees the same data. Thread-safe: an object does
/// not change after the constructor. An exception fails the run with the exception's
/// text; before the run the exception is train()'s error.
class data_set {
public:
  virtual ~data_set() = default;

  /// The shape of the samples. A job refuses a model that takes samples of another
  /// shape. Absent if the shape is unknown; the shape is then not checked.
  virtual std::optional<sample_shape> one_sample() const { return {}; }

  /// Writes sample `index` of the run. Every index from 0 on is valid: a run may be of
  /// any length.
  virtual void training(std::int64_t index, const sample_view& to) const = 0;

  /// The number of held-out samples.
  virtual std::int64_t evaluation_size() const = 0;

  /// Writes held-out sample `index`, from 0 to below evaluation_size().
  virtual void evaluation(std::int64_t index, const sample_view& to) const = 0;

  /// True if the held-out samples are also samples that training sees. The score on
  /// such samples then predicts nothing about other samples.
  virtual bool evaluates_training_data() const { return false; }

  /// Number of samples in one pass over the training data. For windows drawn at random,
  /// the number of windows that together have as many tokens as the training data.
  /// Absent if the data have no end.
  virtual std::optional<std::int64_t> epoch() const { return {}; }

  /// The loss on held-out samples, in nats a prediction, that no model can beat on
  /// average; absent if unknown.
  virtual std::optional<double> loss_floor() const { return {}; }

  /// The identity of the samples, by which a run refuses to resume with other data.
  /// Absent if the identity is unknown; nothing is then compared.
  virtual std::optional<data_identity> identity() const { return {}; }

  /// One line for people: the kind and the size of the data.
  virtual std::string description() const = 0;
};

} // namespace troupe
