// SPDX-License-Identifier: BSD-3-Clause
#include "models/optimizer.hpp"

#include "kernels/optimizers.hpp"
#include "models/optimizer_catalog.hpp"
#include "models/short_text.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <numbers>
#include <set>
#include <sstream>
#include <string_view>

namespace troupe {

double rate_schedule::factor(std::int64_t first, std::int64_t last,
                             std::int64_t total) const {
  if (last <= warmup)
    return static_cast<double>(last) / static_cast<double>(warmup);
  if (!cosine)
    return 1;
  const auto left = std::max<std::int64_t>((course > 0 ? course : total) - warmup, 1);
  const double done = std::clamp(
    static_cast<double>(first - warmup) / static_cast<double>(left), 0.0, 1.0);
  return floor + (1 - floor) * (1 + std::cos(std::numbers::pi * done)) / 2;
}

namespace {

/// Whether a whole text is a number in plain decimal. Stores the number in `value`.
template <class Number>
bool read(std::string_view text, Number& value) {
  const auto* const end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, value);
  return failed == std::errc{} && stop == end;
}

} // namespace

tl::expected<rate_schedule, std::string> rate_schedule::parse(const std::string& text) {
  const tl::unexpected<std::string> error{
    "--lr-schedule '" + text
    + "': write constant or cosine, then at most once ,warmup=SAMPLES and, for cosine, "
      ",floor=FRACTION"};
  rate_schedule result;
  std::set<std::string> seen_keys;
  std::stringstream parts{text};
  for (std::string part; std::getline(parts, part, ',');) {
    const auto equals = part.find('=');
    const auto key = part.substr(0, equals);
    const auto value = equals == std::string::npos ? "" : part.substr(equals + 1);
    const bool shape = equals == std::string::npos;
    if (!seen_keys.insert(shape ? "shape" : key).second)
      return error;
    if (shape && (key == "constant" || key == "cosine"))
      result.cosine = key == "cosine";
    else if (shape
             || !(key == "warmup"  ? read(value, result.warmup)
                  : key == "floor" ? read(value, result.floor)
                                   : false))
      return error;
    if (result.warmup < 0 || !(result.floor >= 0 && result.floor <= 1))
      return error;
  }
  if (seen_keys.empty() || text.ends_with(',') || (result.floor != 0 && !result.cosine))
    return error;
  return result;
}

std::string validation_error(const optimizer_options& options) {
  if (auto error = selection_error(options); !error.empty())
    return error;
  const auto text_of = [](const char* name, double value) {
    return std::string{name} + ' ' + short_text(value);
  };
  for (const auto& [name, value] : {std::pair{"lr", options.rate},
                                    {"weight-decay", options.weight_decay},
                                    {"momentum", options.momentum},
                                    {"eps", options.epsilon},
                                    {"clip", options.clip}})
    if (!std::isfinite(value) || value < 0)
      return text_of(name, value) + " is not allowed; the value is at least 0";
  for (const auto& [name, value] : {std::pair{"momentum", options.momentum},
                                    {"beta1", options.beta1},
                                    {"beta2", options.beta2}})
    if (!(value >= 0 && value < 1))
      return text_of(name, value) + " is not allowed; the value is from 0 to below 1";
  if (rule_of(options).reads_epsilon && static_cast<float>(options.epsilon) == 0)
    return text_of("eps", options.epsilon) + " is below 1e-45, and " + options.name
           + " would divide a gradient of 0 by 0";
  if (options.scope == clip_scope::stage && options.clip == 0)
    return "clip=stage needs a norm: say --clip 1, for example";
  return {};
}

/// Values that all parts of an update share.
struct optimizer::step {
  value_update decayed; ///< With weight decay.
  value_update plain;   ///< Without weight decay.
  float scale;
};

double clip_factor(double clip, double norm) {
  return clip > 0 ? std::min(1.0, clip / (norm + 1e-6)) : 1.0;
}

int optimizer::state_size(const optimizer_options& options) {
  return static_cast<int>(rule_of(options).state(options).size());
}

std::int64_t optimizer::state_values(const optimizer_options& options,
                                     const layer_list<float>& layers,
                                     const bucket_shares& shares) {
  std::int64_t values = 0;
  for (const auto& part : parts_of(layers, shares))
    values += padded(part.values());
  return state_size(options) * values;
}

optimizer::optimizer(const optimizer_options& options, const layer_list<float>& layers,
                     std::int64_t total_samples, memory_account& account,
                     const bucket_shares& shares, bucket_extent gradients,
                     bucket_extent parameters)
  : options_(options),
    parts_(parts_of(layers, shares)),
    gradients_(gradients),
    parameters_(parameters),
    total_samples_(total_samples) {
  const int arrays = state_size(options);
  for (int i = 0; i < arrays; ++i) {
    state_.emplace_back(state_values(options, layers, shares) / arrays, account);
    account.use(state_.back().bytes());
  }
}

void optimizer::set_state(int array, std::size_t bucket, const float* from) {
  std::int64_t state = 0;
  for (const auto& p : parts_) {
    if (p.bucket == bucket)
      std::copy_n(from + p.begin, p.values(),
                  state_[static_cast<std::size_t>(array)].data() + state);
    state += padded(p.values());
  }
}

void optimizer::copy_state(int array, std::size_t bucket, std::int64_t begin,
                           std::int64_t end, float* to) const {
  std::int64_t state = 0;
  for (const auto& p : parts_) {
    if (p.bucket == bucket && p.begin <= begin && end <= p.end) {
      std::copy_n(state_[static_cast<std::size_t>(array)].data() + state + begin
                    - p.begin,
                  end - begin, to);
      return;
    }
    state += padded(p.values());
  }
  throw std::logic_error("an optimizer shard does not hold the requested state");
}

double optimizer::next_rate(std::int64_t samples) const {
  return options_.rate
         * options_.schedule.factor(samples_, samples_ + samples, total_samples_);
}

optimizer::step optimizer::next_step(std::int64_t samples, double factor) {
  const double rate = next_rate(samples);
  samples_ += samples;
  ++updates_;
  const auto& rule = rule_of(options_);
  const auto decayed = rule.update(options_, {rate, options_.weight_decay, updates_});
  return {decayed,
          options_.decay_only_matrices ? rule.update(options_, {rate, 0, updates_})
                                       : decayed,
          static_cast<float>(factor / static_cast<double>(samples))};
}

/// Updates `n` values of a part; `state` is the index of the first value's state.
void optimizer::apply(const step& update_step, const parameter_part& part,
                      std::int64_t state, const float* gradient, const float* from,
                      float* to, std::int64_t n, stream& compute_stream) {
  const bool decays = part.of_matrix || !options_.decay_only_matrices;
  update_arrays arrays{gradient, from, to};
  for (std::size_t i = 0; i < state_.size(); ++i)
    arrays.state[i] = state_[i].data() + state;
  update_values(decays ? update_step.decayed : update_step.plain, update_step.scale,
                arrays, n, compute_stream);
}

void optimizer::update(std::int64_t samples, double factor,
                       const std::vector<const float*>& gradients,
                       const std::vector<const float*>& from,
                       const std::vector<float*>& to, stream& compute_stream) {
  const auto update_step = next_step(samples, factor);
  std::int64_t state = 0;
  for (const auto& p : parts_) {
    apply(update_step, p, state, gradients[p.bucket] + p.offset_in(gradients_),
          from[p.bucket] + p.offset_in(parameters_),
          to[p.bucket] + p.offset_in(parameters_), p.values(), compute_stream);
    state += padded(p.values());
  }
}

void optimizer::update_shared(std::int64_t first, std::int64_t samples, double factor,
                              const std::vector<const float*>& gradients,
                              const std::vector<float*>& parameters,
                              stream& compute_stream) {
  constexpr std::int64_t at_once = 64; // few, as other threads' updates are lost
  stream cpu; // a GPU cannot reach this function's local arrays
  stream& local_stream = compute_stream.gpu() == nullptr ? compute_stream : cpu;
  samples_ = first;
  const auto update_step = next_step(samples, factor);
  std::int64_t state = 0;
  for (const auto& p : parts_) {
    auto* const shared_values = parameters[p.bucket] + p.offset_in(parameters_);
    const auto* const gradient = gradients[p.bucket] + p.offset_in(gradients_);
    for (std::int64_t i = 0; i < p.values(); i += at_once) {
      float local_values[at_once];
      const auto n = std::min(at_once, p.values() - i);
      for (std::int64_t k = 0; k < n; ++k)
        local_values[k] =
          std::atomic_ref{shared_values[i + k]}.load(std::memory_order_relaxed);
      apply(update_step, p, state + i, gradient + i, local_values, local_values, n,
            local_stream);
      for (std::int64_t k = 0; k < n; ++k)
        std::atomic_ref{shared_values[i + k]}.store(local_values[k],
                                                    std::memory_order_relaxed);
    }
    state += padded(p.values());
  }
}

} // namespace troupe
