// SPDX-License-Identifier: BSD-3-Clause
// A user's meeting: data replicas vote on the sign of each gradient, and so send one
// bit a value instead of 32. Replica 0 counts the votes and sends the outcome to the
// others. Bernstein et al., "signSGD with Majority Vote is Communication Efficient and
// Fault Tolerant", 2018, algorithm 1.

#include <troupe/troupe.hpp>

#include <iostream>
#include <utility>

namespace {

using bits = std::vector<std::byte>;
using troupe::exchange_message;

class majority_vote : public troupe::user_exchange {
public:
  explicit majority_vote(const troupe::exchange_member& where) : where_(where) {}

  std::vector<exchange_message>
  begin(std::span<const std::span<float>> gradients) override {
    gradients_.assign(gradients.begin(), gradients.end());
    votes_.assign(values(), 0);
    missing_ = where_.replica == 0 ? where_.replicas - 1 : 1;
    over_ = false;
    bits own((values() + 7) / 8);
    std::size_t i = 0;
    for (const auto bucket : gradients_)
      for (const float g : bucket) {
        if (g > 0)
          own[i / 8] |= std::byte{1} << (i % 8);
        ++i;
      }
    if (where_.replica > 0)
      return {{0, std::move(own)}};
    count(own);
    return {};
  }

  std::vector<exchange_message> receive(int,
                                        std::span<const std::byte> payload) override {
    if (where_.replica > 0) {
      obey(payload);
      return {};
    }
    count(payload);
    if (--missing_ > 0)
      return {};
    bits outcome((values() + 7) / 8);
    for (std::size_t i = 0; i < values(); ++i)
      if (votes_[i] > 0)
        outcome[i / 8] |= std::byte{1} << (i % 8);
    obey(outcome);
    std::vector<exchange_message> result;
    for (int r = 1; r < where_.replicas; ++r)
      result.push_back({r, outcome});
    return result;
  }

  bool is_done() const override { return over_; }

  std::string waits_for() const override {
    return where_.replica == 0 ? "votes of " + std::to_string(missing_) + " replicas"
                               : "the outcome of a vote";
  }

private:
  std::size_t values() const {
    std::size_t result = 0;
    for (const auto bucket : gradients_)
      result += bucket.size();
    return result;
  }

  static bool bit(std::span<const std::byte> of, std::size_t i) {
    return (of[i / 8] >> (i % 8) & std::byte{1}) != std::byte{0};
  }

  void count(std::span<const std::byte> ballot) {
    for (std::size_t i = 0; i < votes_.size(); ++i)
      votes_[i] += bit(ballot, i) ? 1 : -1;
  }

  // Values for which no replica has a gradient belong to no parameter: they are the
  // padding between parameters.
  void obey(std::span<const std::byte> outcome) {
    std::size_t i = 0;
    for (const auto bucket : gradients_)
      for (float& g : bucket)
        g = bit(outcome, i++) ? 1.0F : -1.0F;
    over_ = true;
  }

  troupe::exchange_member where_;
  std::vector<std::span<float>> gradients_;
  std::vector<int> votes_;
  int missing_ = 0;
  bool over_ = false;
};

} // namespace

int main() {
  const troupe::model_options gpt{.layers = 2, .width = 32, .length = 32};
  const auto data = troupe::open_data("synthetic", gpt, 1);
  troupe::training_job job{
    .model = gpt, .data = data.value(), .pipeline_schedule = troupe::gpipe()};
  job.stages = 2;
  job.replicas = 4;
  job.batch = 32;
  job.optimizer.name = "sgd";
  job.optimizer.rate = 1;
  const auto summed = troupe::train(job);
  job.user_exchange = [](const troupe::exchange_member& where) {
    return std::make_unique<majority_vote>(where);
  };
  job.optimizer.rate =
    0.001 * static_cast<double>(job.batch); // an update divides by the batch
  const auto voted = troupe::train(job);
  for (const auto& one : {summed, voted})
    if (!one || one->outcome != troupe::ending::finished) {
      std::cerr << (one ? one->failure : one.error()) << '\n';
      return 1;
    }
  std::cout << "summed: loss " << summed->loss.back() << ", "
            << summed->exchanged_bytes / job.steps << " bytes a step; voted: loss "
            << voted->loss.back() << ", " << voted->exchanged_bytes / job.steps << '\n';
  const bool learns = voted->loss.back() < 0.8 * voted->loss.front();
  return learns && voted->exchanged_bytes * 20 < summed->exchanged_bytes ? 0 : 1;
}
