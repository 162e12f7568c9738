// SPDX-License-Identifier: BSD-3-Clause
// A user's data set: points on two spirals, which a network classifies. A sample is
// computed from the seed and the sample's index. Every schedule therefore sees the same
// samples, in any order.

#include <troupe/troupe.hpp>

#include <cmath>
#include <iostream>
#include <random>

namespace {

class two_spirals : public troupe::data_set {
public:
  explicit two_spirals(std::uint64_t seed) : seed_(seed) {}

  std::optional<troupe::sample_shape> one_sample() const override {
    return troupe::sample_shape{.inputs = 2};
  }

  void training(std::int64_t index, const troupe::sample_view& to) const override {
    write(2 * index, to);
  }

  std::int64_t evaluation_size() const override { return 1000; }
  void evaluation(std::int64_t index, const troupe::sample_view& to) const override {
    write(2 * index + 1, to); // never one of the training samples
  }

  std::string description() const override { return "points on two spirals"; }

private:
  // Safe on several threads: every random generator is local to the call.
  void write(std::int64_t number, const troupe::sample_view& to) const {
    std::seed_seq seeds{seed_, static_cast<std::uint64_t>(number)};
    std::mt19937_64 random{seeds};
    std::uniform_real_distribution<float> along{0.25F, 1.0F};
    std::normal_distribution<float> noise{0, 0.02F};
    const int spiral = static_cast<int>(random() % 2);
    const float turn = along(random);
    const float angle = 6.28F * turn + 3.14F * static_cast<float>(spiral);
    to.pixels[0] = turn * std::cos(angle) + noise(random);
    to.pixels[1] = turn * std::sin(angle) + noise(random);
    to.labels[0] = spiral;
  }

  std::uint64_t seed_;
};

} // namespace

int main() {
  troupe::user_network net;
  net.layers = {troupe::linear("fc1", 2, 64, true), troupe::linear("fc2", 64, 64, true),
                troupe::linear("fc3", 64, 2)};
  troupe::training_job job{.model = net,
                           .data = std::make_shared<two_spirals>(7),
                           .pipeline_schedule = troupe::pipedream()};
  job.stages = 3;
  job.steps = 200;
  job.batch = 64;
  job.held_out = 1000;
  const auto result = troupe::train(job);
  if (!result || result->outcome != troupe::ending::finished) {
    std::cerr << (result ? result->failure : result.error()) << '\n';
    return 1;
  }
  std::cout << "right on " << 100 * result->accuracy.value_or(0)
            << " % of points that training has not seen\n";
  return result->accuracy.value_or(0) > 0.9 ? 0 : 1;
}
