// SPDX-License-Identifier: BSD-3-Clause
#include "models/weights.hpp"

#include "models/hugging_face.hpp"
#include "models/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>

namespace troupe {

namespace {

std::string text_of(const std::vector<std::int64_t>& dims) {
  std::string result = "[";
  for (const auto dim : dims)
    result += (result.size() > 1 ? ", " : "") + std::to_string(dim);
  return result + "]";
}

/// The name under which the network knows a tensor of a GPT-2 file.
std::string full_name(const std::string& name) {
  if (name.starts_with("transformer.") || name == "lm_head.weight")
    return name;
  return "transformer." + name;
}

/// The causal masks that older files carry as if they were weights.
bool is_mask(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

/// What is wrong with a file's tensor for a parameter; empty if nothing is.
std::string mismatch(const parameter& p, const stored_tensor& t) {
  if (!t.is_readable())
    return "tensor '" + t.name + "' is " + t.type + "; weights are read as F32 or BF16";
  if (t.dims != p.dims)
    return "tensor '" + t.name + "' is " + text_of(t.dims) + "; this model needs "
           + text_of(p.dims);
  return {};
}

/// The first value that is not finite, as "NAME[7] is nan"; empty if there is none.
/// \param first the number of the first of the values in their tensor
std::string not_finite(const std::string& name, std::int64_t first,
                       std::span<const float> values) {
  const auto found =
    std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
  if (found == values.end())
    return {};
  return name + "[" + std::to_string(first + (found - values.begin())) + "] is "
         + std::to_string(*found);
}

/// The first of some finite values that bf16 does not hold, as "[7] is 3.4e38"; empty
/// if there is none.
std::string too_large(std::span<const float> values) {
  const auto found = std::ranges::find_if_not(
    values, [](float x) { return std::isfinite(fp32_of(bf16_of(x))); });
  if (found == values.end())
    return {};
  return "[" + std::to_string(found - values.begin()) + "] is "
         + std::to_string(*found);
}

/// Calls look(first, count) for a tensor's values, some at a time, until it has found
/// something; returns that.
template <class Look>
auto look_through(const stored_tensor& t, const Look& look) {
  constexpr std::int64_t at_once = 1 << 16;
  const auto all = t.values();
  const decltype(look(all, all)) nothing{};
  for (std::int64_t first = 0; first < all; first += at_once)
    if (auto found = look(first, std::min(at_once, all - first)); found != nothing)
      return found;
  return nothing;
}

std::vector<float> read_some(const safetensors_file& file, const stored_tensor& t,
                             std::int64_t first, std::int64_t count) {
  std::vector<float> result(static_cast<std::size_t>(count));
  file.read(t, first, result);
  return result;
}

/// The same of a tensor in a file.
std::string not_finite(const safetensors_file& file, const stored_tensor& t) {
  return look_through(t, [&](std::int64_t first, std::int64_t count) {
    return not_finite(t.name, first, read_some(file, t, first, count));
  });
}

/// The first of some values whose bits differ; absent if all are equal.
std::optional<std::int64_t> first_apart(std::span<const float> a,
                                        std::span<const float> b) {
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  const auto where = std::ranges::mismatch(a, b, {}, bits, bits).in1;
  if (where == a.end())
    return {};
  return where - a.begin();
}

/// The same of two tensors of one shape in a file.
std::optional<std::int64_t> first_apart(const safetensors_file& file,
                                        const stored_tensor& a,
                                        const stored_tensor& b) {
  return look_through(a, [&](std::int64_t first, std::int64_t count) {
    auto which =
      first_apart(read_some(file, a, first, count), read_some(file, b, first, count));
    if (which)
      *which += first;
    return which;
  });
}

} // namespace

weight_source initial_weights(const network<float>& whole, std::uint64_t seed) {
  return [layers = whole.layers, seed](std::size_t layer, float* bucket) {
    for (const auto& p : layers[layer]->parameters())
      initialise(p, seed, bucket + p.offset);
  };
}

tl::expected<weight_source, std::string> weights_from(const std::filesystem::path& path,
                                                      const network<float>& whole) {
  auto opened = safetensors_file::open(path);
  if (!opened)
    return tl::unexpected{opened.error()};
  const auto file = std::make_shared<const safetensors_file>(std::move(*opened));
  std::optional<gpt2_config> config;
  if (whole.options.model == "gpt") {
    auto read = read_config(path, file->metadata());
    if (!read)
      return tl::unexpected{read.error()};
    config = std::move(*read);
    if (auto wrong = config ? mismatch(*config, whole.options) : ""; !wrong.empty())
      return tl::unexpected{wrong};
  }
  std::map<std::string, stored_tensor> found; // by the network's name
  const auto refuse = [&](const std::string& why) {
    return tl::unexpected{path.string() + ": " + why};
  };
  for (const auto& t : file->tensors()) {
    if (whole.reads_tokens && is_mask(t.name))
      continue;
    const auto name = whole.reads_tokens ? full_name(t.name) : t.name;
    if (const auto [other, is_new] = found.emplace(name, t); !is_new)
      return refuse("tensors '" + other->second.name + "' and '" + t.name
                    + "' are the same parameter");
  }
  if (const auto words = found.find("transformer.wte.weight");
      whole.reads_tokens && words != found.end() && (!config || config->tied))
    found.emplace("lm_head.weight", words->second); // tied, unless the file has its own
  std::set<std::string> known;
  for (const auto* p : whole.parameters()) {
    known.insert(p->name);
    const auto t = found.find(p->name);
    if (t == found.end())
      return refuse(
        "tensor '" + p->name + "' is missing"
        + (config && !config->tied && p->name == "lm_head.weight"
             ? ", and in " + config->path.string() + " tie_word_embeddings is false"
             : ""));
    if (auto why = mismatch(*p, t->second); !why.empty())
      return refuse(why);
  }
  for (const auto& [name, t] : found)
    if (!known.contains(name))
      return refuse("this model has no tensor '" + t.name + "'");
  for (const auto& [name, t] : found)
    if (const auto which = not_finite(*file, t); !which.empty())
      return refuse("the weights read are not finite: " + which);
  for (const auto* p : whole.parameters())
    if (const auto& own = found.at(p->name), &tied = found.at(p->stored_name());
        own.name != tied.name)
      if (const auto which = first_apart(*file, own, tied))
        return refuse("tensors '" + own.name + "' and '" + tied.name
                      + "' differ from value " + std::to_string(*which)
                      + " on; with --tied they are one matrix: leave it out to train "
                        "them apart");
  if (config && config->tied) {
    const auto& head = found.at("lm_head.weight");
    const auto& words = found.at("transformer.wte.weight");
    const auto which =
      head.name == words.name ? std::nullopt : first_apart(*file, head, words);
    if (which)
      return refuse("tensors '" + head.name + "' and '" + words.name
                    + "' differ from value " + std::to_string(*which) + " on; "
                    + config->path.string()
                    + " says that they are one matrix, unless tie_word_embeddings is "
                      "false there");
  }
  return [file, found, layers = whole.layers](std::size_t layer, float* bucket) {
    for (const auto& p : layers[layer]->parameters())
      file->read(found.at(p.name), 0,
                 {bucket + p.offset, static_cast<std::size_t>(p.values())});
  };
}

std::string not_finite(const network<float>& whole,
                       const std::vector<const float*>& buckets) {
  for (std::size_t layer = 0; layer < whole.layers.size(); ++layer)
    for (const auto& p : whole.layers[layer]->parameters())
      if (auto which = not_finite(
            p.name, 0,
            {buckets[layer] + p.offset, static_cast<std::size_t>(p.values())});
          !which.empty())
        return which;
  return {};
}

std::string save_weights(const std::filesystem::path& path, const network<float>& whole,
                         const std::vector<const float*>& buckets,
                         const file_metadata& metadata, precision stored) {
  if (const auto which = not_finite(whole, buckets); !which.empty())
    return "cannot write " + path.string() + ": the weights are not finite: " + which
           + "; a lower learning rate or clipping may help";
  std::vector<tensor_to_store> tensors;
  for (std::size_t layer = 0; layer < whole.layers.size(); ++layer)
    for (const auto& p : whole.layers[layer]->parameters()) {
      if (!p.tied_to.empty())
        continue;
      const std::span values{buckets[layer] + p.offset,
                             static_cast<std::size_t>(p.values())};
      const auto large = stored == precision::bf16 ? too_large(values) : std::string{};
      if (!large.empty())
        return "cannot write " + path.string() + ": " + p.name + large
               + ", more than bf16 holds: save it as fp32";
      tensors.push_back({p.name, p.dims, values.data(), stored});
    }
  if (const auto tied = whole.tied()) {
    const auto copy = [&](const tied_matrix::place& at) {
      return std::span{buckets[at.layer] + at.offset,
                       static_cast<std::size_t>(tied->values)};
    };
    if (const auto which = first_apart(copy(tied->head), copy(tied->embedding)))
      return "cannot write " + path.string()
             + ": the head and the embedding are one matrix, and differ from value "
             + std::to_string(*which) + " on";
  }
  // The config goes just before the weights take their place: no moment in which an
  // older one makes others lose the head, and none of its own beside older weights.
  std::string wrong;
  auto worse = write_safetensors(path, tensors, metadata,
                                 [&] { wrong = write_config(path, whole.options); });
  return worse.empty() ? wrong : worse;
}

} // namespace troupe
