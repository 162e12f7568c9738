// SPDX-License-Identifier: BSD-3-Clause
// Weights that are read from files: the function weights_from of weights.hpp.

#include "models/fitted_tensor.hpp"
#include "models/hugging_face.hpp"
#include "models/safetensors.hpp"
#include "models/tensor_names.hpp"
#include "models/value_checks.hpp"
#include "models/weights.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>

namespace troupe {

namespace {

using problem = tl::unexpected<std::string>;

/// Calls look(first, count) for a tensor's values, up to 65,536 at a time, until a call
/// finds something. Returns the result of that call.
template <class Look>
auto look_through(const stored_tensor& t, const Look& look) {
  constexpr std::int64_t at_once = 1 << 16;
  const auto values = t.values();
  const decltype(look(values, values)) nothing{};
  for (std::int64_t first = 0; first < values; first += at_once)
    if (auto result = look(first, std::min(at_once, values - first)); result != nothing)
      return result;
  return nothing;
}

std::vector<float> read_some(const safetensors_file& file, const stored_tensor& t,
                             std::int64_t first, std::int64_t count) {
  std::vector<float> result(static_cast<std::size_t>(count));
  file.read(t, first, result);
  return result;
}

/// The first value of a tensor that is not finite, in the form of not_finite().
std::string first_not_finite(const safetensors_file& file, const stored_tensor& t) {
  auto which = look_through(t, [&](std::int64_t first, std::int64_t count) {
    return not_finite(t.name, first, read_some(file, t, first, count));
  });
  return which.empty() || t.type != "F64" ? which : which + ", rounded to fp32";
}

/// The index of the first value by which two tensors of one shape differ; absent if all
/// values are equal.
std::optional<std::int64_t> first_difference(const safetensors_file& file,
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

/// A sentence that follows the path.
struct unusable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The tensors of a file, mapped to parameters.
class weight_file {
public:
  weight_file(safetensors_file file, const network<float>& whole,
              std::optional<gpt2_config> config)
    : file_(std::make_shared<const safetensors_file>(std::move(file))),
      whole_(whole),
      config_(std::move(config)) {
    // nop
  }

  /// Checks the whole file before the first value is used. \throws unusable
  void check() {
    name_tensors();
    fit_tensors();
    for (const auto& [name, t] : tensors_)
      if (const auto which = first_not_finite(*file_, t); !which.empty())
        throw unusable("weights are not finite: " + which);
    compare_copies();
    compare_with_config();
  }

  weight_source source() const {
    return [file = file_, tensors = tensors_, layers = whole_.layers](std::size_t layer,
                                                                      float* bucket) {
      for (const auto& p : layers[layer]->parameters())
        file->read(tensors.at(p.name), 0,
                   {bucket + p.offset, static_cast<std::size_t>(p.values())});
    };
  }

  /// A sentence for each tensor that is not used whole, or not unchanged.
  std::vector<std::string> notes() const {
    std::vector<std::string> result{notes_.begin(), notes_.end()};
    if (std::ranges::any_of(
          tensors_, [](const auto& named) { return named.second.type == "F64"; }))
      result.push_back("values of F64 are rounded to fp32");
    return result;
  }

private:
  void name_tensors() {
    const tensor_names names{file_->tensors(), whole_};
    for (const auto& t : file_->tensors()) {
      if (names.is_mask(t.name))
        continue;
      const auto [earlier, is_new] = tensors_.emplace(names.parameter_of(t.name), t);
      if (!is_new)
        throw unusable("tensors '" + earlier->second.name + "' and '" + t.name
                       + "' are for the same parameter");
    }
    const auto words = tensors_.find(words_name);
    const bool ties = whole_.reads_tokens && (!config_ || config_->tied);
    if (ties && words != tensors_.end())
      tensors_.emplace(head_name,
                       words->second); // unless the file has a head of its own
  }

  void fit_tensors() {
    const auto advice = whole_.reads_tokens
                          ? advice_on_sizes(tensors_, whole_.options, config_)
                          : std::string{};
    std::set<std::string> known;
    for (const auto* p : whole_.parameters()) {
      known.insert(p->name);
      const auto t = tensors_.find(p->name);
      if (t == tensors_.end())
        throw unusable("tensor '" + p->name + "' is missing"
                       + (lacks_untied_head(*p) ? note_on_head() : advice));
      auto fits = fitted(*p, t->second, whole_.options, config_, advice);
      if (!fits)
        throw unusable(fits.error());
      t->second = std::move(fits->tensor);
      if (!fits->note.empty())
        notes_.insert(std::move(fits->note));
    }
    for (const auto& [name, t] : tensors_)
      if (!known.contains(name))
        throw unusable("the model has no tensor '" + t.name + "'" + advice);
  }

  bool lacks_untied_head(const parameter& missing) const {
    return config_ && !config_->tied && missing.name == head_name;
  }

  std::string note_on_head() const {
    return ", and in " + config_->path.string() + " tie_word_embeddings is false";
  }

  void compare_copies() const {
    for (const auto* p : whole_.parameters())
      if (const auto& copy = tensors_.at(p->name),
          &tied = tensors_.at(p->stored_name());
          copy.name != tied.name)
        compare(copy, tied, reason_of_tie());
  }

  void compare_with_config() const {
    if (config_ && config_->tied)
      compare(tensors_.at(head_name), tensors_.at(words_name), reason_of_tie());
  }

  /// What makes the head and the embedding one matrix, with advice: the end of a
  /// sentence.
  std::string reason_of_tie() const {
    if (config_ && config_->tied)
      return config_->path.string()
             + ": give equal tensors, or tie_word_embeddings: false in the config";
    return "--tied: give equal tensors, or untied weights";
  }

  void compare(const stored_tensor& head, const stored_tensor& words,
               const std::string& why) const {
    const auto which =
      head.name == words.name ? std::nullopt : first_difference(*file_, head, words);
    if (which)
      throw unusable("tensors '" + head.name + "' and '" + words.name
                     + "' first differ at value " + std::to_string(*which)
                     + ", but are one matrix by " + why);
  }

  std::shared_ptr<const safetensors_file> file_;
  const network<float>& whole_;
  std::optional<gpt2_config> config_;
  named_tensors tensors_;
  std::set<std::string> notes_;
};

} // namespace

tl::expected<weight_source, std::string> weights_from(const std::filesystem::path& path,
                                                      const network<float>& whole,
                                                      std::vector<std::string>* notes) {
  auto file = safetensors_file::open(path);
  if (!file)
    return problem{file.error()};
  const auto file_path = file->path().string();
  std::optional<gpt2_config> config;
  if (whole.options.model == "gpt") {
    auto read = read_config(file->path(), file->metadata());
    if (!read)
      return problem{read.error()};
    config = std::move(*read);
    if (auto error = config ? mismatch(*config, whole.options) : ""; !error.empty())
      return problem{error};
  }
  weight_file weights{std::move(*file), whole, std::move(config)};
  try {
    weights.check();
  } catch (const unusable& error) {
    return problem{file_path + ": " + error.what()};
  }
  if (notes != nullptr)
    for (const auto& note : weights.notes())
      notes->push_back(file_path + ": " + note);
  return weights.source();
}

} // namespace troupe
