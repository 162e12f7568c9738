// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/memory.hpp"
#include "models/layer.hpp"
#include "models/layers/moe.hpp"
#include "models/model_options.hpp"

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A matrix that two layers of a network hold as one parameter: where its copies stand.
/// Their gradients are added before an update, so that both stay the same.
struct tied_matrix {
  struct place {
    std::size_t layer;
    std::int64_t offset; ///< Of the first value in the layer's bucket.
  };

  place embedding;
  place head;
  std::int64_t values; ///< Of each copy; in a tensor shard those of its words.
};

/// An expert of a network.
template <class Scalar>
struct network_expert {
  std::size_t of_layer;
  int index; ///< Among those of its layer.
  std::shared_ptr<const layer<Scalar>> what;
};

/// Layers in a line, and a softmax cross-entropy behind the last.
template <class Scalar>
struct network {
  model_options options; ///< What it was made of.
  layer_list<Scalar> layers;
  /// For each layer the unit that `--split` counts: a transformer block, or a layer.
  /// The embedding belongs to the first unit, the final norm and head to the last.
  /// Units are never cut.
  std::vector<int> unit_of_layer;
  bool reads_tokens = false;
  std::int64_t rows = 1;    ///< Predictions a sample.
  std::int64_t classes = 0; ///< Logits a prediction.
  tensor_shard shard = {};  ///< Which part of the layers this is, if not all.
  /// Experts, layer by layer. The layers compute them if they are at home.
  std::vector<network_expert<Scalar>> experts = {};
  experts_at experts_are = experts_at::home;

  int units() const { return unit_of_layer.back() + 1; }

  /// What samples are.
  element element_of_input() const {
    return reads_tokens ? element::int32 : element::fp32;
  }

  /// Values of all parameters; those of a tied matrix count once.
  std::int64_t values() const;

  /// All parameters, in the model's order; a tied matrix twice.
  std::vector<const parameter*> parameters() const;

  /// The tied matrix, of this shard if the network is one; absent: nothing is tied.
  std::optional<tied_matrix> tied() const;
};

/// Whether a model is lenet or lenet5, whose layers and widths no option changes.
bool is_lenet(const std::string& model);

/// The network, or what is wrong with its name or sizes, and what is allowed.
template <class Scalar>
tl::expected<network<Scalar>, std::string> make_network(const model_options& options);

/// What stages hold of a network where experts are actors of their own. \pre
/// make_network makes one of the same options, with experts
template <class Scalar>
network<Scalar> make_without_experts(const model_options& options);

/// The tensor shards of a network, or why it cannot be cut into so many.
/// \param by_sequence whether they share out the positions of sequences too
template <class Scalar>
tl::expected<std::vector<network<Scalar>>, std::string>
make_shards(const model_options& options, int shards, bool by_sequence = false);

/// The network for shorter sequences. Its parameters are the same, as places in their
/// buckets too. \pre it reads tokens, and 1 <= length <= whole.rows
template <class Scalar>
network<Scalar> of_length(const network<Scalar>& whole, std::int64_t length);

/// Cuts a network into contiguous stages: the first layer of each, and the number of
/// layers at the end.
/// \param split units a stage; empty: the largest stage costs as little as possible
/// \param costs of the units, in any measure; empty: operations of their forwards
template <class Scalar>
tl::expected<std::vector<int>, std::string>
cut(const network<Scalar>& whole, int stages, const std::vector<int>& split,
    const std::vector<double>& costs = {});

} // namespace troupe
