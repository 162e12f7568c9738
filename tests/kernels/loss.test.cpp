#include "kernels/cross_entropy.hpp"
#include "tests/kernels/numbers.hpp"

#include <catch2/catch_test_macros.hpp>

#include <limits>

using namespace troupe;

namespace {

constexpr std::int64_t R = 40, V = 21;

template <class Scalar>
loss_sum loss_of(std::vector<Scalar>& logits, Scalar scale, int threads = 1) {
  const auto labels = random_labels(R, V, 5);
  std::vector<Scalar> losses(R);
  stream on{threads};
  loss_sum result;
  cross_entropy<Scalar>::forward(dense(logits.data(), R, V), labels.data(), scale,
                                 losses.data(), result, on);
  return result;
}

} // namespace

TEST_CASE("cross-entropy is the negative log-likelihood of the labels",
          "[cross_entropy]") {
  auto logits = random_values<double>(R * V, 1);
  const auto labels = random_labels(R, V, 5);
  double expected = 0;
  for (std::size_t r = 0; r < R; ++r) {
    double sum = 0;
    for (std::size_t v = 0; v < V; ++v)
      sum += std::exp(logits[r * V + v]);
    expected -=
      std::log(std::exp(logits[r * V + static_cast<std::size_t>(labels[r])]) / sum);
  }
  CHECK(std::abs(loss_of(logits, 1.0).loss - expected) < 1e-10);
}

TEST_CASE("its gradient is that of finite differences", "[cross_entropy]") {
  const auto logits = random_values<double>(R * V, 1);
  auto gradient = logits;
  loss_of(gradient, 0.5);
  const auto half_loss = [](std::vector<double> at) {
    return loss_of(at, 1.0).loss / 2;
  };
  CHECK(relative_difference(gradient, finite_differences(half_loss, logits)) < 1e-7);
}

TEST_CASE("cross-entropy in float agrees with double, on any number of threads",
          "[cross_entropy]") {
  auto fast = random_values<float>(R * V, 1);
  auto together = fast;
  auto exact = random_values<double>(R * V, 1);
  const auto loss = loss_of(fast, 1.0F), same = loss_of(together, 1.0F, 3);
  const auto true_loss = loss_of(exact, 1.0);
  CHECK(std::abs(loss.loss / true_loss.loss - 1) < 1e-6);
  CHECK(loss.correct == true_loss.correct);
  CHECK(relative_difference(fast, exact) < 1e-6);
  CHECK(fast == together);
  CHECK(loss.loss == same.loss);
}

TEST_CASE("huge logits neither overflow nor hide an infinity", "[cross_entropy]") {
  auto logits = random_values<float>(R * V, 1);
  for (auto& x : logits)
    x *= 1e4F;
  CHECK(std::isfinite(loss_of(logits, 1.0F).loss));
  logits.assign(R * V, std::numeric_limits<float>::infinity());
  CHECK_FALSE(std::isfinite(loss_of(logits, 1.0F).loss));
}
