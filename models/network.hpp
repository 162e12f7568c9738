// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Networks: layers in a line, made from options, and cut into stages and tensor shards.

#include "kernels/memory.hpp"
#include "models/layer.hpp"
#include "models/layers/moe.hpp"
#include "models/model_options.hpp"

#include <tl/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A matrix that two layers of a network hold as one parameter, and the positions of
/// both copies. The gradients of both copies are added before an update, so that both
/// copies stay equal.
struct tied_matrix {
  struct location {
    std::size_t layer;
    std::int64_t offset; ///< Offset of the first value in the layer's bucket.
  };

  location embedding;
  location head;
  /// Values of each copy; in a tensor shard, values of the shard's words.
  std::int64_t values;
};

/// An expert of a network.
template <class Scalar>
struct network_expert {
  std::size_t of_layer; ///< Index of the layer in the network.
  int index;            ///< Index among the experts of the layer.
  std::shared_ptr<const layer<Scalar>> expert;
};

/// Layers in a line, and a softmax cross-entropy after the last layer.
template <class Scalar>
struct network {
  /// Options that the network was made of. For a user's network only `model` counts,
  /// which is "own".
  model_options options;
  layer_list<Scalar> layers;
  /// For each layer the unit that `--split` counts: a transformer block, or a layer.
  /// The embedding belongs to the first unit, the final norm and head to the last.
  /// Stages never cut a unit.
  std::vector<int> unit_of_layer;
  bool reads_tokens = false;
  std::int64_t rows = 1;    ///< Number of predictions for each sample.
  std::int64_t classes = 0; ///< Number of logits of each prediction.
  tensor_shard shard = {};  ///< The tensor shard of the layers; default: the whole.
  /// Experts, layer by layer, without shared experts. Local experts are computed by the
  /// layers.
  std::vector<network_expert<Scalar>> experts = {};
  expert_location experts_are = expert_location::local;

  int units() const { return unit_of_layer.back() + 1; }

  /// The type of the values of input samples.
  element element_of_input() const {
    return reads_tokens ? element::int32 : element::fp32;
  }

  /// Number of values of all parameters of `layers`; a tied matrix counts once.
  /// Parameters of remote experts are not counted.
  std::int64_t values() const;

  /// The parameters of `layers`, in the model's order; a tied matrix appears twice, and
  /// remote experts are left out. The layers own the parameters.
  std::vector<const parameter*> parameters() const;

  /// The tied matrix, of this shard if the network is a shard; absent if the network
  /// ties nothing.
  std::optional<tied_matrix> tied() const;
};

/// True if a model is lenet or lenet5, whose layers and widths no option changes.
bool is_lenet(const std::string& model);

/// Returns the network of these options; on error one sentence: the wrong name or size,
/// and the allowed values. Storing bf16 is an error unless Scalar is float.
template <class Scalar>
tl::expected<network<Scalar>, std::string> make_network(const model_options& options);

/// Returns the network for stages whose experts are actors of their own: layers without
/// the experts' parameters. A shared expert stays in the layer.
/// \pre make_network makes a network of the same options, with experts
template <class Scalar>
network<Scalar> make_without_experts(const model_options& options);

/// Returns the tensor shards of a gpt, by index. On error one sentence: the options are
/// wrong, are of another model, or do not allow `shards` shards.
/// \pre shards >= 1
/// \param by_sequence true: shards also divide the positions of sequences
template <class Scalar>
tl::expected<std::vector<network<Scalar>>, std::string>
make_shards(const model_options& options, int shards, bool by_sequence = false);

/// Returns the network for sequences of `length` tokens. The parameters, and their
/// offsets in the buckets, are those of `whole`.
/// \pre `whole` is a gpt or moe that was made of options
/// \pre 1 <= length <= whole.rows; with whole.shard.by_sequence, whole.shard.count
/// divides the length
template <class Scalar>
network<Scalar> of_length(const network<Scalar>& whole, std::int64_t length);

/// Cuts a network into contiguous stages. Returns the index of each stage's first
/// layer, then the number of layers. On error one sentence: the network has fewer units
/// than `stages`, or `split` or `costs` does not fit the network.
/// \param split number of units of each stage; empty: the most expensive stage costs as
/// little as possible
/// \param costs of the units, in any measure; empty: operations of the units' forwards
template <class Scalar>
tl::expected<std::vector<int>, std::string>
cut(const network<Scalar>& whole, int stages, const std::vector<int>& split,
    const std::vector<double>& costs = {});

} // namespace troupe
