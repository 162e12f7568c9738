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

/// Whether tools make a vocabulary of `words` as long as `rows`, for fast products.
bool is_padded(std::int64_t rows, std::int64_t words) {
  constexpr std::int64_t largest_unit = 128;
  for (std::int64_t unit = 2; unit <= largest_unit; unit *= 2)
    if ((words + unit - 1) / unit * unit == rows)
      return true;
  return false;
}

/// The end of a sentence about a tensor of another shape: the option that helps.
std::string advice(const parameter& p, const sizes& dims) {
  const auto say = [](const char* option, std::int64_t value) {
    return std::string{": say "} + option + " " + std::to_string(value);
  };
  if (dims.size() != 2 || p.dims.size() != 2)
    return {};
  const bool is_words = is_table_of_words(p), is_positions = p.name == positions_name;
  if ((is_words || is_positions) && dims[1] != p.dims[1])
    return say("--d-model", dims[1]);
  if (is_words)
    return say("--vocab", dims[0]);
  if (is_positions)
    return say("--seq", dims[0]) + " or less";
  if (dims == sizes{p.dims[1], p.dims[0]})
    return ": it is transposed, as torch.nn.Linear has it; the files of GPT-2 have a "
           "row for each input";
  return {};
}

} // namespace

tl::expected<fitted_tensor, std::string>
fitted(const parameter& p, const stored_tensor& t, const model_options& model,
       const std::optional<gpt2_config>& config) {
  if (!t.is_readable())
    return problem{"tensor '" + t.name + "' is " + t.type + "; weights are read as "
                   + readable_types()};
  if (t.dims == p.dims)
    return fitted_tensor{t};
  const bool is_longer = p.dims.size() == 2 && t.dims.size() == 2
                         && t.dims[1] == p.dims[1] && t.dims[0] > p.dims[0];
  const bool counts_words = config && config->words == model.words;
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
  if (is_longer && is_table_of_words(p)
      && (counts_words || is_padded(t.dims[0], p.dims[0])))
    return cut("words");
  return problem{"tensor '" + t.name + "' is " + text_of(t.dims) + "; this model needs "
                 + text_of(p.dims) + advice(p, t.dims)};
}

std::string advice_on_blocks(const std::vector<std::string>& parameters,
                             const model_options& model) {
  constexpr std::string_view block = "transformer.h.";
  std::int64_t blocks = 0;
  for (const auto& name : parameters) {
    int number = 0;
    if (!name.starts_with(block))
      continue;
    const auto [end, failed] =
      std::from_chars(name.data() + block.size(), name.data() + name.size(), number);
    if (failed == std::errc{})
      blocks = std::max<std::int64_t>(blocks, std::int64_t{number} + 1);
  }
  if (blocks == 0 || blocks == model.layers)
    return {};
  return ": the file has " + std::to_string(blocks)
         + (blocks == 1 ? " block" : " blocks") + ", so say --layers "
         + std::to_string(blocks);
}

} // namespace troupe
