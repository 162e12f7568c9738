// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cross_entropy.hpp"

#include "kernels/arrays.hpp"
#include "kernels/cuda/dispatch.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/vector_math.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <memory>

namespace troupe {

namespace {

constexpr std::int64_t rows_a_slice = 16;

template <class Scalar>
loss_sum sum_of_rows(const Scalar* row_losses, std::int64_t rows,
                     std::int64_t correct) {
  loss_sum result{.loss = 0, .correct = correct};
  for (std::int64_t r = 0; r < rows; ++r)
    result.loss += static_cast<double>(row_losses[r]);
  return result;
}

/// Whether a label's logit is the first of the largest logits.
/// \param most the largest logit of the row
template <class Scalar>
bool is_first_largest(const Scalar* row, std::int64_t label, Scalar most) {
  return row[label] == most && std::find(row, row + label, most) == row + label;
}

/// Stores a row of gradients, which stands in the place of the logits, as `gradient`
/// stores it. Values of bf16 overwrite the beginning of the row, part by part.
template <class Scalar>
void store_gradient(const Scalar* row, std::int64_t r,
                    const stored_matrix<Scalar>& gradient) {
  if constexpr (std::same_as<Scalar, float>)
    if (gradient.is_bf16) {
      constexpr std::int64_t part = 1024;
      float values[part];
      auto* const to = gradient.rounded().row(r);
      for (std::int64_t v = 0; v < gradient.columns; v += part) {
        const auto n = std::min(part, gradient.columns - v);
        std::copy_n(row + v, n, values);
        round_row(values, n, to + v);
      }
    }
}

[[maybe_unused]] std::int32_t* hits_on(cuda::stream& gpu, std::int64_t rows) {
  return static_cast<std::int32_t*>(gpu.space(cuda::workspace::rows, 4 * rows));
}

/// Sums the losses and hits of all rows on a GPU. `sum` is filled on a thread of the
/// stream when the GPU has finished, and must outlive that call.
[[maybe_unused]] void sum_on(cuda::stream& gpu, const float* row_losses,
                             std::int64_t rows, const std::int32_t* hits,
                             loss_sum& sum) {
  static_assert(sizeof sum <= cuda::stream::result_bytes);
  const auto result = gpu.result();
  cuda::cross_entropy::sum(row_losses, hits, rows, static_cast<loss_sum*>(result.get()),
                           gpu.handle());
  gpu.on_complete([result, &sum](const std::exception_ptr& failure) {
    if (!failure)
      sum = *static_cast<const loss_sum*>(result.get());
  });
}

} // namespace

template <class Scalar>
void cross_entropy<Scalar>::forward(matrix<Scalar> logits, const std::int32_t* labels,
                                    Scalar scale, stored_matrix<Scalar> gradient,
                                    Scalar* row_losses, loss_sum& sum, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu()) {
      auto* const hits = hits_on(*gpu, logits.rows);
      cuda::cross_entropy::forward(logits, labels, scale, gradient, row_losses, hits,
                                   gpu->handle());
      return sum_on(*gpu, row_losses, logits.rows, hits, sum);
    }
  std::atomic<std::int64_t> correct = 0;
  stream.cpu().run_ranges(logits.rows, rows_a_slice,
                          [&](std::int64_t first, std::int64_t last, int) {
                            std::int64_t hits = 0;
                            for (auto r = first; r < last; ++r) {
                              auto* row = logits.row(r);
                              const auto label = labels[r];
                              const Scalar label_logit = row[label];
                              const Scalar most = largest(row, logits.columns);
                              hits += is_first_largest(row, label, most);
                              Scalar mass = 0;
                              for (std::int64_t v = 0; v < logits.columns; ++v) {
                                row[v] = fast_exp(row[v] - most);
                                mass += row[v];
                              }
                              const Scalar factor = scale / mass;
                              for (std::int64_t v = 0; v < logits.columns; ++v)
                                row[v] *= factor;
                              row[label] -= scale;
                              store_gradient(row, r, gradient);
                              row_losses[r] = most + std::log(mass) - label_logit;
                            }
                            correct += hits;
                          });
  sum = sum_of_rows(row_losses, logits.rows, correct);
}

template <class Scalar>
void cross_entropy<Scalar>::prepare(matrix<const Scalar> logits, std::int64_t first,
                                    const std::int32_t* labels, Scalar* local_facts,
                                    stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu())
      return cuda::cross_entropy::prepare(logits, first, labels, local_facts,
                                          gpu->handle());
  auto* const largest_of = local_facts;
  auto* const sum_of = local_facts + logits.rows;
  auto* const labelled = local_facts + 2 * logits.rows;
  stream.cpu().run_ranges(
    logits.rows, rows_a_slice, [&](std::int64_t begin, std::int64_t end, int) {
      const auto exponentials = std::make_unique_for_overwrite<Scalar[]>(
        static_cast<std::size_t>(logits.columns));
      for (auto r = begin; r < end; ++r) {
        const auto* row = logits.row(r);
        const auto label = labels[r] - first;
        const bool is_here = label >= 0 && label < logits.columns;
        const Scalar most = largest(row, logits.columns);
        for (std::int64_t v = 0; v < logits.columns; ++v)
          exponentials[static_cast<std::size_t>(v)] = fast_exp(row[v] - most);
        const Scalar sum =
          arrays<Scalar>::sum_in_order(exponentials.get(), logits.columns);
        largest_of[r] = most;
        sum_of[r] = is_here && is_first_largest(row, label, most) ? -sum : sum;
        labelled[r] = is_here ? row[label] : Scalar{0};
      }
    });
}

template <class Scalar>
void cross_entropy<Scalar>::finish(matrix<Scalar> logits, std::int64_t first,
                                   const std::int32_t* labels, const Scalar* all_facts,
                                   int shards, int local_shard, Scalar scale,
                                   stored_matrix<Scalar> gradient, Scalar* row_losses,
                                   loss_sum& sum, stream& stream) {
  if constexpr (cuda::may_run<Scalar>)
    if (auto* const gpu = stream.gpu()) {
      auto* const hits = hits_on(*gpu, logits.rows);
      cuda::cross_entropy::finish(logits, first, labels, all_facts, shards, local_shard,
                                  scale, gradient, row_losses, hits, gpu->handle());
      return sum_on(*gpu, row_losses, logits.rows, hits, sum);
    }
  const auto fact = [&](int shard, int which, std::int64_t row) {
    return all_facts[shard * facts(logits.rows) + which * logits.rows + row];
  };
  std::atomic<std::int64_t> correct = 0;
  stream.cpu().run_ranges(
    logits.rows, rows_a_slice, [&](std::int64_t begin, std::int64_t end, int) {
      std::int64_t hits = 0;
      for (auto r = begin; r < end; ++r) {
        Scalar most = fact(0, 0, r);
        int upper = 0; // the first shard with the largest
        for (int t = 1; t < shards; ++t)
          if (fact(t, 0, r) > most) {
            most = fact(t, 0, r);
            upper = t;
          }
        Scalar mass = 0, labelled = 0;
        for (int t = 0; t < shards; ++t) {
          mass += std::abs(fact(t, 1, r)) * std::exp(fact(t, 0, r) - most);
          labelled += fact(t, 2, r);
        }
        auto* row = logits.row(r);
        const Scalar local_most = fact(local_shard, 0, r);
        const Scalar factor = scale * std::exp(local_most - most) / mass;
        for (std::int64_t v = 0; v < logits.columns; ++v)
          row[v] = fast_exp(row[v] - local_most) * factor;
        const auto label = labels[r] - first;
        if (label >= 0 && label < logits.columns)
          row[label] -= scale;
        store_gradient(row, r, gradient);
        row_losses[r] = most + std::log(mass) - labelled;
        hits += std::signbit(fact(upper, 1, r));
      }
      correct += hits;
    });
  sum = sum_of_rows(row_losses, logits.rows, correct);
}

template struct cross_entropy<float>;
template struct cross_entropy<double>;

} // namespace troupe
