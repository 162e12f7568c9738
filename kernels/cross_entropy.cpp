#include "kernels/cross_entropy.hpp"

#include "kernels/vector_math.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace troupe {

template <class Scalar>
loss_sum cross_entropy<Scalar>::forward(matrix<Scalar> logits,
                                        const std::int32_t* labels, Scalar scale,
                                        Scalar* row_losses, team& threads) {
  constexpr std::int64_t rows_a_slice = 16;
  std::atomic<std::int64_t> correct = 0;
  threads.run_ranges(logits.rows, rows_a_slice,
                     [&](std::int64_t first, std::int64_t last, int) {
                       std::int64_t hits = 0;
                       for (auto r = first; r < last; ++r) {
                         auto* row = logits.row(r);
                         const auto label = labels[r];
                         const Scalar own = row[label];
                         const Scalar most = largest(row, logits.columns);
                         Scalar sum = 0;
                         for (std::int64_t v = 0; v < logits.columns; ++v) {
                           row[v] = fast_exp(row[v] - most);
                           sum += row[v];
                         }
                         const Scalar factor = scale / sum;
                         for (std::int64_t v = 0; v < logits.columns; ++v)
                           row[v] *= factor;
                         row[label] -= scale;
                         row_losses[r] = most + std::log(sum) - own;
                         hits += own >= most;
                       }
                       correct += hits;
                     });
  loss_sum result;
  for (std::int64_t r = 0; r < logits.rows; ++r)
    result.loss += static_cast<double>(row_losses[r]);
  result.correct = correct;
  return result;
}

template struct cross_entropy<float>;
template struct cross_entropy<double>;

} // namespace troupe
