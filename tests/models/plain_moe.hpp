// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/layers/moe.hpp"
#include "models/random.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

/// The second half of a block with experts, written from the papers, in double and one
/// token at a time. The definition uses only two things of the project: the parameters'
/// positions, and the random numbers of the noise.
namespace plain {

using vector = std::vector<double>;

/// The gate of Switch (Fedus et al., "Switch Transformers", 2021) for k = 1. For k = 2
/// the gate of GShard (Lepikhin et al., "GShard", 2020, algorithm 1), without the
/// random second choice. For larger k the same as GShard's.
class moe {
public:
  /// \param l gives the parameters' positions in the bucket
  moe(const troupe::gpt_shape& dims, int block, const troupe::expert_options& options,
      const troupe::layer<double>& l)
    : width_(static_cast<std::size_t>(dims.width)),
      length_(dims.length),
      full_length_(dims.known_positions()),
      experts_(static_cast<std::size_t>(options.count)),
      chosen_(static_cast<std::size_t>(options.chosen)),
      name_("transformer.h." + std::to_string(block) + "."),
      options_(options),
      layer_(l) {
    // nop
  }

  struct outcome {
    vector y;           ///< (R, C)
    double balance = 0; ///< n * sum over experts of f P: Switch's equations 4 to 6
    double margin = 1;  ///< Least lead of one expert over another.
    int dropped = 0;
  };

  /// \param x (R, C): samples of `length` positions
  /// \param first index of the first sample in the run; -1: an evaluation, which has
  /// neither noise nor full experts
  outcome forward(const vector& bucket, const vector& x, std::int64_t first) const {
    const auto rows = x.size() / width_;
    outcome out{x};
    std::vector<choice> all;
    for (std::size_t r = 0; r < rows; ++r) {
      const auto row = x.begin() + static_cast<std::ptrdiff_t>(r * width_);
      auto normed = norm(bucket, {row, row + static_cast<std::ptrdiff_t>(width_)});
      all.push_back(
        gate(bucket, std::move(normed),
             first < 0 ? -1 : noise_row(first, static_cast<std::int64_t>(r))));
      out.margin = std::min(out.margin, all.back().margin);
    }
    out.balance = balance(all);
    // All first choices, in the order of rows, come before any second choice.
    std::vector<double> taken(experts_);
    for (std::size_t c = 0; c < chosen_; ++c)
      for (std::size_t r = 0; r < rows; ++r) {
        const auto e = all[r].best[c];
        if (first >= 0 && taken[e] >= options_.capacity * even_share(rows)) {
          ++out.dropped;
          continue;
        }
        taken[e] += 1;
        add(out.y, r, all[r].weight(c, chosen_),
            network(bucket, "mlp.experts." + std::to_string(e) + ".", all[r].normed));
      }
    for (std::size_t r = 0; r < rows && options_.shared; ++r)
      add(out.y, r, 1, network(bucket, "mlp.shared.", all[r].normed));
    return out;
  }

private:
  /// Each position of each sample has a row of the noise, also at a shorter length.
  std::int64_t noise_row(std::int64_t first, std::int64_t row) const {
    return (first + row / length_) * full_length_ + row % length_;
  }

  /// The gate's result for one token.
  struct choice {
    vector normed;
    vector p;                      ///< a probability an expert
    std::vector<std::size_t> best; ///< experts, the most probable first
    double margin;

    /// Switch multiplies with the probability. Other gates first scale the
    /// probabilities of all chosen experts, dropped or not, to a sum of 1.
    double weight(std::size_t c, std::size_t chosen) const {
      double sum = 0;
      for (std::size_t other = 0; other < chosen; ++other)
        sum += p[best[other]];
      return p[best[c]] / (chosen == 1 ? 1 : sum);
    }
  };

  choice gate(const vector& bucket, vector normed, std::int64_t row) const {
    auto p = times(normed, at(bucket, "mlp.router.weight"), experts_);
    const troupe::random_stream noise{options_.seed, name_ + "mlp.router.noise"};
    for (std::size_t e = 0; e < experts_ && row >= 0; ++e)
      p[e] +=
        options_.noise * noise.normal(static_cast<std::uint64_t>(row) * experts_ + e);
    p = softmax(std::move(p));
    std::vector<std::size_t> best(experts_);
    std::iota(best.begin(), best.end(), 0);
    std::ranges::sort(best, std::greater{}, [&](std::size_t e) { return p[e]; });
    double margin = 1;
    for (std::size_t c = 0; c < std::min(chosen_, experts_ - 1); ++c)
      margin = std::min(margin, p[best[c]] - p[best[c + 1]]);
    return {std::move(normed), std::move(p), std::move(best), margin};
  }

  double balance(const std::vector<choice>& all) const {
    const auto rows = static_cast<double>(all.size());
    double result = 0;
    for (std::size_t e = 0; e < experts_; ++e) {
      double f = 0, p = 0; // fraction of rows with e first; its mean probability
      for (const auto& one : all) {
        f += (one.best[0] == e ? 1 : 0) / rows;
        p += one.p[e] / rows;
      }
      result += static_cast<double>(experts_) * f * p;
    }
    return result;
  }

  double even_share(std::size_t rows) const {
    return static_cast<double>(rows * chosen_) / static_cast<double>(experts_);
  }

  const double* at(const vector& bucket, const std::string& name) const {
    return bucket.data() + layer_.parameter_called(name_ + name).offset;
  }

  /// The norm of Ba et al., "Layer Normalization", 2016, with PyTorch's 1e-5.
  vector norm(const vector& bucket, vector x) const {
    const auto n = static_cast<double>(x.size());
    double mean = 0, variance = 0;
    for (const double v : x)
      mean += v / n;
    for (const double v : x)
      variance += (v - mean) * (v - mean) / n;
    for (std::size_t c = 0; c < x.size(); ++c)
      x[c] = (x[c] - mean) / std::sqrt(variance + 1e-5) * at(bucket, "ln_2.weight")[c]
             + at(bucket, "ln_2.bias")[c];
    return x;
  }

  static vector softmax(vector x) {
    double sum = 0;
    for (auto& v : x)
      sum += v = std::exp(v);
    for (auto& v : x)
      v /= sum;
    return x;
  }

  /// A row times a matrix of `columns` columns.
  static vector times(const vector& row, const double* matrix, std::size_t columns) {
    vector result(columns);
    for (std::size_t i = 0; i < row.size(); ++i)
      for (std::size_t j = 0; j < columns; ++j)
        result[j] += row[i] * matrix[i * columns + j];
    return result;
  }

  /// c_proj(gelu(c_fc(x))), with GPT-2's GELU (Hendrycks & Gimpel, 2016: by tanh).
  vector network(const vector& bucket, const std::string& name, const vector& x) const {
    auto hidden = times(x, at(bucket, name + "c_fc.weight"), 4 * width_);
    for (std::size_t i = 0; i < hidden.size(); ++i) {
      const double h = hidden[i] + at(bucket, name + "c_fc.bias")[i];
      hidden[i] =
        0.5 * h
        * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (h + 0.044715 * h * h * h)));
    }
    auto result = times(hidden, at(bucket, name + "c_proj.weight"), width_);
    for (std::size_t i = 0; i < width_; ++i)
      result[i] += at(bucket, name + "c_proj.bias")[i];
    return result;
  }

  void add(vector& y, std::size_t row, double weight, const vector& what) const {
    for (std::size_t c = 0; c < width_; ++c)
      y[row * width_ + c] += weight * what[c];
  }

  std::size_t width_;                 // C
  std::int64_t length_, full_length_; // tokens of the given samples, and at full length
  std::size_t experts_;               // n
  std::size_t chosen_;                // k
  std::string name_;
  troupe::expert_options options_;
  const troupe::layer<double>& layer_;
};

} // namespace plain
