// SPDX-License-Identifier: BSD-3-Clause
#include "models/fitted_tensor.hpp"

#include "models/float_types.hpp"
#include "models/tensor_names.hpp"

#include <algorithm>
#include <charconv>

namespace troupe {

namespace {

using problem = tl::unexpected<std::string>;
using sizes = std::vector<std::int64_t>;

std::string text_of(const sizes& dims) {
  std::string result = "[";
  for (const auto dim : dims)
    result += (result.size() > 1 ? ", " : "") + std::to_string(dim);
  return result + "]";
}

bool is_table_of_words(const parameter& p) {
  return p.name == words_name || p.name == head_name;
}

/// Whether tools pad a vocabulary of `words` words to `rows` rows, for fast products.
bool is_padded(std::int64_t rows, std::int64_t words) {
  constexpr std::int64_t largest_unit = 128;
  for (std::int64_t unit = 2; unit <= largest_unit; unit *= 2)
    if ((words + unit - 1) / unit * unit == rows)
      return true;
  return false;
}

/// Whether the words behind the model's last word are left out.
bool leaves_words_out(std::int64_t rows, const model_options& model,
                      const std::optional<gpt2_config>& config) {
  return rows > model.words
         && ((config && config->words == model.words) || is_padded(rows, model.words));
}

/// The number of blocks, by the largest number in the names of parameters.
std::int64_t blocks_in(const named_tensors& tensors) {
  constexpr std::string_view block = "transformer.h.";
  std::int64_t result = 0;
  for (const auto& [name, tensor] : tensors) {
    int number = 0;
    if (!name.starts_with(block))
      continue;
    const auto [end, failed] =
      std::from_chars(name.data() + block.size(), name.data() + name.size(), number);
    if (failed == std::errc{})
      result = std::max<std::int64_t>(result, std::int64_t{number} + 1);
  }
  return result;
}

} // namespace

std::string advice_on_sizes(const named_tensors& tensors, const model_options& model,
                            const std::optional<gpt2_config>& config) {
  std::string options, keys;
  // A size that the config holds cannot be given by an option.
  const auto suggest = [&](const char* option, const char* key,
                           std::optional<std::int64_t> held, std::int64_t value) {
    const auto number = " " + std::to_string(value);
    if (held)
      keys += (keys.empty() ? "" : ", ") + std::string{key} + number;
    else
      options += std::string{" "} + option + number;
  };
  const auto size_of = [&](const char* name, std::size_t dim) -> std::int64_t {
    const auto entry = tensors.find(name);
    return entry != tensors.end() && entry->second.dims.size() == 2
             ? entry->second.dims[dim]
             : 0;
  };
  const auto blocks = blocks_in(tensors), width = size_of(words_name, 1),
             words = size_of(words_name, 0), positions = size_of(positions_name, 0);
  const auto held = config.value_or(gpt2_config{});
  if (blocks > 0 && blocks != model.layers)
    suggest("--layers", "n_layer", held.layers, blocks);
  if (width > 0 && width != model.width)
    suggest("--d-model", "n_embd", held.width, width);
  if (words > 0 && words != model.words && !leaves_words_out(words, model, config))
    suggest("--vocab", "vocab_size", held.words, words);
  if (positions > 0 && positions < model.length) {
    suggest("--seq", "n_positions", std::nullopt, positions);
    options += " or less";
  }
  if (keys.empty())
    return options.empty() ? "" : ": say" + options;
  return ": correct " + held.path.string() + " to " + keys
         + (options.empty() ? "" : ", and say" + options);
}

tl::expected<fitted_tensor, std::string>
fitted(const parameter& p, const stored_tensor& t, const model_options& model,
       const std::optional<gpt2_config>& config, const std::string& advice) {
  if (!t.is_readable())
    return problem{"tensor '" + t.name + "' is " + t.type + "; readable types are "
                   + readable_types()};
  if (t.dims == p.dims)
    return fitted_tensor{t};
  const bool is_longer = p.dims.size() == 2 && t.dims.size() == 2
                         && t.dims[1] == p.dims[1] && t.dims[0] > p.dims[0];
  const auto cut = [&](const std::string& rows) {
    auto result = fitted_tensor{t};
    result.tensor.dims = p.dims;
    result.note = "the first " + std::to_string(p.dims[0]) + " of "
                  + std::to_string(t.dims[0]) + " " + rows + " of tensor '" + t.name
                  + "' are used";
    return result;
  };
  if (is_longer && p.name == positions_name)
    return cut("positions");
  if (is_longer && is_table_of_words(p) && leaves_words_out(t.dims[0], model, config))
    return cut("words");
  const bool is_transposed =
    p.dims.size() == 2 && t.dims == sizes{p.dims[1], p.dims[0]};
  return problem{"tensor '" + t.name + "' is " + text_of(t.dims) + "; the model needs "
                 + text_of(p.dims)
                 + (is_transposed ? ", transposed: store a row for each input, in the "
                                    "form of GPT-2's files and not of torch.nn.Linear"
                                  : advice)};
}

} // namespace troupe
