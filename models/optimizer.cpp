#include "models/optimizer.hpp"

#include "kernels/optimizers.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <sstream>

namespace troupe {

double rate_schedule::factor(std::int64_t first, std::int64_t last,
                             std::int64_t total) const {
  if (last <= warmup)
    return static_cast<double>(last) / static_cast<double>(warmup);
  if (!cosine)
    return 1;
  const auto left = std::max<std::int64_t>(total - warmup, 1);
  const double done = std::clamp(
    static_cast<double>(first - warmup) / static_cast<double>(left), 0.0, 1.0);
  return floor + (1 - floor) * (1 + std::cos(std::numbers::pi * done)) / 2;
}

tl::expected<rate_schedule, std::string> rate_schedule::parse(const std::string& text) {
  const tl::unexpected<std::string> wrong{
    "learning-rate schedule '" + text
    + "': write constant or cosine, and warmup=SAMPLES or floor=FRACTION behind a "
      "comma"};
  rate_schedule result;
  std::stringstream parts{text};
  for (std::string part; std::getline(parts, part, ',');) {
    const auto equals = part.find('=');
    const auto key = part.substr(0, equals);
    if (equals == std::string::npos && (key == "constant" || key == "cosine")) {
      result.cosine = key == "cosine";
      continue;
    }
    std::stringstream value{equals == std::string::npos ? "" : part.substr(equals + 1)};
    if (key == "warmup")
      value >> result.warmup;
    else if (key == "floor")
      value >> result.floor;
    else
      return wrong;
    if (value.fail() || !value.eof() || result.warmup < 0 || result.floor < 0
        || result.floor > 1)
      return wrong;
  }
  return result;
}

double clip_factor(double clip, double norm) {
  return clip > 0 ? std::min(1.0, clip / (norm + 1e-6)) : 1.0;
}

int optimizer::state_size(const optimizer_options& options) {
  if (options.kind == optimizer_kind::adamw)
    return 2;
  return options.momentum != 0 ? 1 : 0;
}

optimizer::optimizer(const optimizer_options& options,
                     std::vector<std::vector<parameter>> layout,
                     const std::vector<std::int64_t>& bucket_values,
                     std::int64_t total_samples, memory_account& account)
  : options_(options), layout_(std::move(layout)), total_samples_(total_samples) {
  std::int64_t values = 0;
  for (const auto bucket : bucket_values) {
    first_.push_back(values);
    values += bucket;
  }
  for (int i = 0; i < state_size(options); ++i) {
    moments_[i] = tensor_memory{values, account};
    account.use(moments_[i].bytes());
  }
}

std::vector<double>
optimizer::squares(const std::vector<const float*>& gradients) const {
  std::vector<double> result;
  for (std::size_t b = 0; b < layout_.size(); ++b)
    for (const auto& p : layout_[b])
      result.push_back(sum_of_squares(gradients[b] + p.offset, p.values()));
  return result;
}

void optimizer::update(std::int64_t samples, double factor,
                       const std::vector<const float*>& gradients,
                       const std::vector<const float*>& from,
                       const std::vector<float*>& to) {
  const double rate =
    options_.rate
    * options_.schedule.factor(samples_, samples_ + samples, total_samples_);
  samples_ += samples;
  ++updates_;
  const auto scale = static_cast<float>(factor / static_cast<double>(samples));
  for (std::size_t b = 0; b < layout_.size(); ++b)
    for (const auto& p : layout_[b]) {
      const bool decays = p.is_matrix() || !options_.decay_only_matrices;
      const double decay = decays ? options_.weight_decay : 0;
      const auto* gradient = gradients[b] + p.offset;
      const auto* before = from[b] + p.offset;
      auto* after = to[b] + p.offset;
      const auto state = first_[b] + p.offset;
      if (options_.kind == optimizer_kind::adamw)
        adamw({rate, options_.beta1, options_.beta2, options_.epsilon, decay, updates_},
              scale, gradient, before, after, moments_[0].data() + state,
              moments_[1].data() + state, p.values());
      else
        sgd({rate, options_.momentum, decay}, scale, gradient, before, after,
            options_.momentum != 0 ? moments_[0].data() + state : nullptr, p.values());
    }
}

} // namespace troupe
