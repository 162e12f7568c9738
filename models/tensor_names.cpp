// SPDX-License-Identifier: BSD-3-Clause
#include "models/tensor_names.hpp"

#include <algorithm>
#include <set>

namespace troupe {

namespace {

std::string parameter_name(const std::string& tensor, bool reads_tokens) {
  if (!reads_tokens || tensor.starts_with("transformer.") || tensor == "lm_head.weight")
    return tensor;
  return "transformer." + tensor;
}

/// The longest text with which all names begin, up to a dot.
std::string common_prefix(const std::vector<stored_tensor>& tensors) {
  if (tensors.empty())
    return {};
  auto result = tensors.front().name;
  for (const auto& t : tensors)
    result.erase(std::ranges::mismatch(result, t.name).in1, result.end());
  result.erase(result.rfind('.') + 1); // npos + 1 is 0
  return result;
}

} // namespace

// Of the prefixes that end with a dot, the constructor takes the shortest for which
// most names are known.
tensor_names::tensor_names(const std::vector<stored_tensor>& tensors,
                           const network<float>& whole)
  : reads_tokens_(whole.reads_tokens) {
  std::set<std::string> known;
  for (const auto* p : whole.parameters())
    known.insert(p->name);
  const auto common = common_prefix(tensors);
  std::ptrdiff_t most = 0;
  for (std::size_t length = 0; length <= common.size();
       length = std::min(common.find('.', length), common.size()) + 1) {
    const auto count = std::ranges::count_if(tensors, [&](const stored_tensor& t) {
      return known.contains(parameter_name(t.name.substr(length), reads_tokens_));
    });
    if (count > most)
      prefix_ = common.substr(0, length);
    most = std::max(most, count);
  }
}

bool tensor_names::is_mask(const std::string& tensor) const {
  return reads_tokens_
         && (tensor.ends_with(".attn.bias") || tensor.ends_with(".attn.masked_bias"));
}

std::string tensor_names::parameter_of(const std::string& tensor) const {
  return parameter_name(tensor.substr(prefix_.size()), reads_tokens_);
}

} // namespace troupe
