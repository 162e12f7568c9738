// SPDX-License-Identifier: BSD-3-Clause
#include "actors/proof/difference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

namespace troupe {

namespace {

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Returns the first index at which two arrays of n values differ in bits; n if none
/// does.
template <class Scalar>
std::int64_t first_apart(const Scalar* a, const Scalar* b, std::int64_t n) {
  std::int64_t i = 0;
  while (i < n && same_bits(a[i], b[i]))
    ++i;
  return i;
}

std::string number(double value, const char* format) {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string instead(double is, double should_be) {
  return " is " + exact(is) + " instead of " + exact(should_be);
}

int stage_of(const training& work, std::size_t layer) {
  const auto next =
    std::ranges::upper_bound(work.first_layers, static_cast<int>(layer));
  return static_cast<int>(next - work.first_layers.begin()) - 1;
}

/// Finds the first and the largest difference between lists of tensors, and of losses.
class comparison {
public:
  explicit comparison(const training& work) : work_(work) {
    // nop
  }

  const difference& result() const { return result_; }

  void compare(const std::string& kind, const std::vector<std::vector<float>>& a,
               const std::vector<std::vector<float>>& b) {
    for (std::size_t l = 0; l < work_.whole.layers.size(); ++l)
      for (const auto& p : work_.whole.layers[l]->parameters()) {
        const auto *x = a[l].data() + p.offset, *y = b[l].data() + p.offset;
        const auto i = first_apart(x, y, p.values());
        if (i == p.values())
          continue;
        if (!has_tensor_)
          note(difference_at(work_, kind, l, p, i, x[i], y[i]));
        has_tensor_ = true;
        measure(x, y, p.values(), kind + " " + p.name);
      }
  }

  void compare_losses(const std::vector<double>& a, const std::vector<double>& b) {
    const auto n = static_cast<std::int64_t>(a.size());
    const auto i = first_apart(a.data(), b.data(), n);
    if (i == n)
      return;
    const auto index = static_cast<std::size_t>(i);
    note("loss of minibatch " + std::to_string(i) + instead(a[index], b[index]));
    measure(a.data(), b.data(), n, "losses");
  }

private:
  void note(const std::string& first) {
    result_.first += (result_.first.empty() ? "" : "; ") + first;
  }

  template <class Scalar>
  void measure(const Scalar* a, const Scalar* b, std::int64_t n,
               const std::string& name) {
    double apart = 0, norm = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
      apart += (x - y) * (x - y);
      norm += y * y;
    }
    const double ratio = std::sqrt(apart) / (norm > 0 ? std::sqrt(norm) : 1);
    const bool larger = !std::isnan(result_.relative) && !(ratio <= result_.relative);
    if (result_.none() || larger) { // a ratio that is NaN is larger than any other
      result_.relative = ratio;
      result_.where = name;
    }
  }

  const training& work_;
  difference result_;
  bool has_tensor_ = false;
};

} // namespace

proof judged(const std::string& name, const std::string& deviation,
             const std::string& praise) {
  return {name, deviation.empty() ? verdict::holds : verdict::fails,
          deviation.empty() ? praise : deviation};
}

std::string difference::text() const {
  if (none())
    return "equal to the bit";
  return first + " (relative difference " + number(relative, "%.3g") + " in " + where
         + ")";
}

std::string difference_at(const training& work, const std::string& kind,
                          std::size_t layer, const parameter& which, std::int64_t index,
                          float is, float should_be) {
  return "stage " + std::to_string(stage_of(work, layer)) + ": " + kind + " "
         + which.name + "[" + std::to_string(index) + "]"
         + instead(static_cast<double>(is), static_cast<double>(should_be));
}

std::string exact(double value) {
  const bool is_float =
    same_bits(static_cast<double>(static_cast<float>(value)), value);
  return number(value, is_float ? "%.9g" : "%.17g");
}

difference between(const training& work, const trained& a, const trained& b) {
  if (a.loss.size() != b.loss.size()) {
    const auto text = std::to_string(a.loss.size()) + " losses instead of "
                      + std::to_string(b.loss.size());
    return {std::numeric_limits<double>::infinity(), "their number", text};
  }
  comparison search{work};
  search.compare_losses(a.loss, b.loss);
  search.compare("parameter", a.parameters, b.parameters);
  search.compare("gradient of", a.gradients, b.gradients);
  return search.result();
}

} // namespace troupe
