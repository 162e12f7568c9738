// SPDX-License-Identifier: BSD-3-Clause
#include "models/network.hpp"

#include "models/layers/conv_pool.hpp"
#include "models/layers/expert.hpp"
#include "models/layers/gpt.hpp"
#include "models/layers/linear.hpp"
#include "models/short_text.hpp"

#include <algorithm>
#include <numeric>
#include <type_traits>

namespace troupe {

namespace {

constexpr std::int64_t image_side = 28; // MNIST's
constexpr std::int64_t image_classes = 10;

template <class Scalar>
network<Scalar> make_gpt(const model_options& o, tensor_shard shard = {},
                         expert_location where = expert_location::local,
                         std::int64_t length = 0) {
  const auto rows = length > 0 ? length : o.length;
  const gpt_shape dims{o.layers, o.width, o.heads,  rows,    o.words,
                       shard,    o.tied,  o.stored, o.length};
  network<Scalar> result{.options = o,
                         .reads_tokens = true,
                         .rows = rows,
                         .classes = o.words,
                         .shard = shard,
                         .experts_are = where};
  const auto add = [&](std::shared_ptr<const layer<Scalar>> next, int unit) {
    result.layers.push_back(std::move(next));
    result.unit_of_layer.push_back(unit);
  };
  const int blocks = static_cast<int>(o.layers);
  add(embedding_layer<Scalar>(dims), 0);
  for (int block = 0; block < blocks; ++block) {
    add(attention_layer<Scalar>(dims, block), block);
    if (o.model == "gpt" || block % 2 == 0) {
      add(feed_forward_layer<Scalar>(dims, block), block);
      continue;
    }
    for (int e = 0; e < o.experts.count; ++e)
      result.experts.push_back(
        {result.layers.size(), e, expert_layer<Scalar>(dims, expert_name(block, e))});
    add(moe_layer<Scalar>(dims, block, o.experts, where), block);
  }
  add(head_layer<Scalar>(dims), blocks - 1);
  return result;
}

template <class Scalar>
network<Scalar> with_a_unit_a_layer(layer_list<Scalar> layers) {
  network<Scalar> result{.layers = std::move(layers), .classes = image_classes};
  result.unit_of_layer.resize(result.layers.size());
  std::iota(result.unit_of_layer.begin(), result.unit_of_layer.end(), 0);
  return result;
}

template <class Scalar>
network<Scalar> make_mlp(const model_options& o) {
  layer_list<Scalar> layers;
  for (std::int64_t i = 1; i <= o.layers; ++i)
    layers.push_back(linear_layer<Scalar>(
      "fc" + std::to_string(i), i == 1 ? image_side * image_side : o.width,
      i == o.layers ? image_classes : o.width, i < o.layers,
      layer_position{o.stored, i == 1, i == o.layers}));
  return with_a_unit_a_layer<Scalar>(std::move(layers));
}

// LeCun et al., "Gradient-Based Learning Applied to Document Recognition", 1998, here
// with ReLU and max-pooling. The model lenet5 sees images of 32 by 32 pixels, as the
// paper's network; lenet sees MNIST's images unchanged.
template <class Scalar>
network<Scalar> make_lenet(const model_options& o) {
  const auto stored = o.stored;
  const convolution_shape first{.images = 1,
                                .channels = 1,
                                .height = image_side,
                                .width = image_side,
                                .filters = 6,
                                .size = 5,
                                .padding = o.model == "lenet5" ? 2 : 0};
  const convolution_shape second{.images = 1,
                                 .channels = first.filters,
                                 .height = first.out_height() / 2,
                                 .width = first.out_width() / 2,
                                 .filters = 16,
                                 .size = 5};
  return with_a_unit_a_layer<Scalar>({
    conv_pool_layer<Scalar>("conv1", first),
    conv_pool_layer<Scalar>("conv2", second, stored),
    linear_layer<Scalar>("fc1", second.out_values() / 4, 120, true, {stored}),
    linear_layer<Scalar>("fc2", 120, 84, true, {stored}),
    linear_layer<Scalar>("fc3", 84, image_classes, false, {stored, false, true}),
  });
}

std::string validation_error(const expert_options& o, std::int64_t blocks) {
  if (blocks < 2)
    return "--layers " + std::to_string(blocks)
           + ": moe has experts in every second block, and needs at least 2 blocks";
  if (o.count < 1 || o.count > 1024)
    return "--experts " + std::to_string(o.count) + ": a layer has 1 to 1,024 experts";
  if (o.chosen < 1 || o.chosen > o.count)
    return "--top-k " + std::to_string(o.chosen) + ": --experts "
           + std::to_string(o.count) + " allows 1 to " + std::to_string(o.count);
  if (!(o.capacity > 0 && o.capacity <= 1e6))
    return "--capacity " + short_text(o.capacity)
           + ": a capacity is above 0 and at most 1,000,000";
  for (const auto& [option, value] :
       {std::pair{"--balance ", o.balance}, {"--gate-noise ", o.noise}})
    if (!(value >= 0 && value <= 1e6))
      return option + short_text(value) + ": the value is from 0 to 1,000,000";
  return {};
}

std::string validation_error(const model_options& o) {
  constexpr std::int64_t most = 1 << 20;
  constexpr std::int64_t most_layers = 10'000; // cut into stages in seconds
  if (o.model != "gpt" && o.model != "mlp" && !is_lenet(o.model) && o.model != "moe")
    return "there is no model '" + o.model + "'; there are " + model_names();
  if (o.layers < 1 || o.layers > most_layers)
    return "--layers " + std::to_string(o.layers) + ": a model has 1 to 10,000 layers";
  for (const auto& [option, size] : {std::pair{"--d-model ", std::int64_t{o.width}},
                                     {"--heads ", std::int64_t{o.heads}},
                                     {"--seq ", std::int64_t{o.length}},
                                     {"--vocab ", std::int64_t{o.words}}})
    if (size < 1 || size > most)
      return option + std::to_string(size) + ": the value is from 1 to 1,048,576";
  const bool is_gpt = o.model == "gpt" || o.model == "moe";
  if (o.tied && !is_gpt)
    return "--tied applies only to gpt and moe, not to " + o.model
           + ": leave --tied out, or say --model gpt or moe";
  const bool has_width = !is_lenet(o.model) && (o.model != "mlp" || o.layers > 1);
  if (o.stored == precision::bf16 && has_width && o.width % 2 != 0)
    return "--d-model " + std::to_string(o.width)
           + " is odd, and bf16 keeps values in pairs: give an even --d-model";
  if (is_gpt && o.width % o.heads != 0)
    return "--d-model " + std::to_string(o.width) + " cannot be cut into --heads "
           + std::to_string(o.heads) + ": give --heads that divides --d-model";
  return o.model == "moe" ? validation_error(o.experts, o.layers) : "";
}

template <class Scalar>
std::string validation_error(const model_options& o) {
  if (!std::is_same_v<Scalar, float> && o.stored != precision::fp32)
    return "only what is summed in fp32 is stored as bf16";
  return validation_error(o);
}

/// Costs of the units, in operations of a unit's forward.
template <class Scalar>
std::vector<double> costs_of(const network<Scalar>& whole) {
  std::vector<double> result(static_cast<std::size_t>(whole.units()));
  for (std::size_t i = 0; i < whole.layers.size(); ++i)
    result[static_cast<std::size_t>(whole.unit_of_layer[i])] +=
      whole.layers[i]->operations();
  return result;
}

/// The unit at which the last of some stages begins. If the last stage begins at one of
/// [first, end), the stage costs `last(begin)`, and the largest earlier stage costs
/// `earlier(begin)`. The result is the first unit where the larger of the two costs is
/// least. With a later begin the last stage costs less and the other stages cost more,
/// so the result is where both costs meet.
template <class Cost, class OtherCost>
std::size_t best_begin(std::size_t first, std::size_t end, const Cost& last,
                       const OtherCost& earlier) {
  const auto first_where = [](std::size_t from, std::size_t to, const auto& holds) {
    while (from < to) {
      const auto middle = from + (to - from) / 2;
      holds(middle) ? to = middle : from = middle + 1;
    }
    return from;
  };
  const auto meet = first_where(
    first, end, [&](std::size_t begin) { return earlier(begin) >= last(begin); });
  if (meet == first || (meet < end && earlier(meet) < last(meet - 1)))
    return meet;
  return first_where(first, meet,
                     [&](std::size_t begin) { return last(begin) <= last(meet - 1); });
}

/// Units of each stage, such that the largest stage costs as little as possible.
std::vector<int> even_split(const std::vector<double>& costs, int stages) {
  const auto units = costs.size(), pieces = static_cast<std::size_t>(stages);
  std::vector<double> prefix_costs(units + 1); // cost of the first n units
  std::partial_sum(costs.begin(), costs.end(), prefix_costs.begin() + 1);
  // When the first n units make k stages: best[n], the largest cost; from[k][n], the
  // unit where the last stage begins.
  auto best = prefix_costs;
  std::vector from(pieces + 1, std::vector<std::uint32_t>(units + 1));
  for (std::size_t k = 2; k <= pieces; ++k) {
    const auto fewer = best; // k - 1 stages
    for (auto n = k; n <= units; ++n) {
      const auto last = [&](std::size_t begin) {
        return prefix_costs[n] - prefix_costs[begin];
      };
      const auto begin =
        best_begin(k - 1, n, last, [&](std::size_t b) { return fewer[b]; });
      best[n] = std::max(fewer[begin], last(begin));
      from[k][n] = static_cast<std::uint32_t>(begin);
    }
  }
  std::vector<int> result(pieces);
  auto end = units;
  for (auto k = pieces; k > 0; --k) {
    result[k - 1] = static_cast<int>(end - from[k][end]);
    end = from[k][end];
  }
  return result;
}

} // namespace

template <class Scalar>
std::vector<const parameter*> network<Scalar>::parameters() const {
  std::vector<const parameter*> result;
  for (const auto& l : layers)
    for (const auto& p : l->parameters())
      result.push_back(&p);
  return result;
}

template <class Scalar>
std::int64_t network<Scalar>::values() const {
  std::int64_t result = 0;
  for (const auto* p : parameters())
    result += p->tied_to.empty() ? p->values() : 0;
  return result;
}

template <class Scalar>
std::optional<tied_matrix> network<Scalar>::tied() const {
  const auto is_copy = [](const parameter& p) { return !p.tied_to.empty(); };
  for (std::size_t head = 0; head < layers.size(); ++head) {
    const auto& of_head = layers[head]->parameters();
    const auto copy = std::ranges::find_if(of_head, is_copy);
    if (copy == of_head.end())
      continue;
    for (std::size_t first = 0; first < head; ++first)
      for (const auto& p : layers[first]->parameters())
        if (p.name == copy->tied_to)
          return tied_matrix{{first, p.offset}, {head, copy->offset}, p.values()};
  }
  return {};
}

std::string model_names() {
  return "gpt, lenet, lenet5, mlp, moe";
}

bool is_lenet(const std::string& model) {
  return model == "lenet" || model == "lenet5";
}

template <class Scalar>
tl::expected<network<Scalar>, std::string> make_network(const model_options& options) {
  if (auto error = validation_error<Scalar>(options); !error.empty())
    return tl::unexpected{std::move(error)};
  if (options.model == "gpt" || options.model == "moe")
    return make_gpt<Scalar>(options);
  auto result =
    options.model == "mlp" ? make_mlp<Scalar>(options) : make_lenet<Scalar>(options);
  result.options = options;
  return result;
}

template <class Scalar>
network<Scalar> make_without_experts(const model_options& options) {
  return make_gpt<Scalar>(options, {}, expert_location::remote);
}

template <class Scalar>
network<Scalar> of_length(const network<Scalar>& whole, std::int64_t length) {
  return make_gpt<Scalar>(whole.options, whole.shard, whole.experts_are, length);
}

template <class Scalar>
tl::expected<std::vector<network<Scalar>>, std::string>
make_shards(const model_options& options, int shards, bool by_sequence) {
  if (auto error = validation_error<Scalar>(options); !error.empty())
    return tl::unexpected{std::move(error)};
  if (options.model != "gpt")
    return tl::unexpected{"tensor=" + std::to_string(shards)
                          + " cuts only the layers of gpt, not of " + options.model
                          + ": leave tensor= out of --mesh, or say --model gpt"};
  if (options.heads % shards != 0)
    return tl::unexpected{"--heads " + std::to_string(options.heads)
                          + " is no multiple of tensor=" + std::to_string(shards)
                          + ": shards have equal numbers of heads"};
  if (options.words < shards)
    return tl::unexpected{"--vocab " + std::to_string(options.words)
                          + " is less than tensor=" + std::to_string(shards)
                          + ": each shard has at least one word"};
  if (by_sequence && options.length % shards != 0)
    return tl::unexpected{"--seq " + std::to_string(options.length)
                          + " is no multiple of tensor=" + std::to_string(shards)
                          + ": with --sequence-parallel shards have equal numbers of "
                            "positions"};
  std::vector<network<Scalar>> result;
  for (int t = 0; t < shards; ++t)
    result.push_back(make_gpt<Scalar>(options, {t, shards, by_sequence}));
  return result;
}

template <class Scalar>
tl::expected<std::vector<int>, std::string>
cut(const network<Scalar>& whole, int stages, const std::vector<int>& split,
    const std::vector<double>& costs) {
  const int units = whole.units();
  if (stages > units)
    return tl::unexpected{"the model can be cut into at most " + std::to_string(units)
                          + " stages, not into " + std::to_string(stages)};
  if (!costs.empty() && static_cast<int>(costs.size()) != units)
    return tl::unexpected{"--split costs= needs one cost for each of the model's "
                          + std::to_string(units) + " blocks or layers"};
  auto sizes = split;
  if (sizes.empty())
    sizes = even_split(costs.empty() ? costs_of(whole) : costs, stages);
  if (static_cast<int>(sizes.size()) != stages
      || std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != units
      || std::ranges::min(sizes) < 1)
    return tl::unexpected{"--split needs a number of at least 1 for each of "
                          + std::to_string(stages) + " stages, and a sum of "
                          + std::to_string(units) + ", the model's blocks or layers"};
  std::vector<int> result;
  int unit = 0;
  for (const int size : sizes) {
    const auto first = std::ranges::lower_bound(whole.unit_of_layer, unit);
    result.push_back(static_cast<int>(first - whole.unit_of_layer.begin()));
    unit += size;
  }
  result.push_back(static_cast<int>(whole.layers.size()));
  return result;
}

template struct network<float>;
template struct network<double>;
template tl::expected<network<float>, std::string>
make_network<float>(const model_options&);
template tl::expected<network<double>, std::string>
make_network<double>(const model_options&);
template network<float> make_without_experts<float>(const model_options&);
template network<double> make_without_experts<double>(const model_options&);
template network<float> of_length<float>(const network<float>&, std::int64_t);
template network<double> of_length<double>(const network<double>&, std::int64_t);
template tl::expected<std::vector<network<float>>, std::string>
make_shards<float>(const model_options&, int, bool);
template tl::expected<std::vector<network<double>>, std::string>
make_shards<double>(const model_options&, int, bool);
template tl::expected<std::vector<int>, std::string>
cut<float>(const network<float>&, int, const std::vector<int>&,
           const std::vector<double>&);
template tl::expected<std::vector<int>, std::string>
cut<double>(const network<double>&, int, const std::vector<int>&,
            const std::vector<double>&);

} // namespace troupe
