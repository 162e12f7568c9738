// SPDX-License-Identifier: BSD-3-Clause
// The optimizer, called as by stages and servers, compared with the papers' definition
// in double.

#include "models/layers/gpt.hpp"
#include "models/layers/linear.hpp"
#include "models/optimizer_catalog.hpp"
#include "tests/dice.hpp"
#include "tests/models/plain_optimizer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>

namespace troupe::optimizer_definition_test {

namespace {

/// Several tensors a bucket, with gaps behind tensors that do not fill cache lines.
layer_list<float> several_tensors() {
  return {linear_layer<float>("fc1", 3, 7, true),
          feed_forward_layer<float>({1, 4, 1, 2, 3}, 0),
          linear_layer<float>("fc2", 17, 5, false)};
}

optimizer_options some_options(dice& d) {
  optimizer_options o;
  const auto names = optimizer_names();
  o.name =
    names[static_cast<std::size_t>(d.number(0, static_cast<int>(names.size()) - 1))];
  if (o.name == "nadam" && d.coin())
    o.parameters = {{"momentum_decay", d.real(0, 2)}};
  o.rate = d.real(0.01, 0.2);
  o.schedule = {d.coin(), d.number(0, 30), d.real(0, 0.5)};
  o.momentum = d.coin() ? d.real(0.3, 0.95) : 0;
  o.beta1 = d.real(0.5, 0.95);
  o.beta2 = d.real(0.8, 0.999);
  o.epsilon = d.coin() ? 1e-8 : 1e-2;
  o.weight_decay = d.coin() ? d.real(0.01, 0.5) : 0;
  o.decay_only_matrices = d.coin();
  return o;
}

using buckets = std::vector<std::vector<float>>;

/// Random values at all positions of some buckets, between tensors too.
buckets random_buckets(const layer_list<float>& layers, dice& d) {
  buckets result;
  for (const auto& l : layers)
    for (auto& x : result.emplace_back(static_cast<std::size_t>(l->bucket())))
      x = d.normal();
  return result;
}

/// The arrays that the owner of some shares receives: whole buckets, or the shares
/// alone.
buckets shares_of(const buckets& all, const bucket_shares& shares,
                  bucket_extent extent) {
  if (extent == bucket_extent::whole)
    return all;
  buckets result;
  for (std::size_t b = 0; b < all.size(); ++b) {
    const auto values = static_cast<std::int64_t>(all[b].size());
    result.emplace_back(all[b].begin() + shares[b].begin(values),
                        all[b].begin() + shares[b].end(values));
  }
  return result;
}

/// Copies the values of an owner's shares back into whole buckets.
void put_back(const buckets& some, const bucket_shares& shares, bucket_extent extent,
              buckets& all) {
  for (std::size_t b = 0; b < all.size(); ++b) {
    const auto values = static_cast<std::int64_t>(all[b].size());
    const auto share = shares[b];
    const auto from = extent == bucket_extent::whole ? share.begin(values) : 0;
    std::copy_n(some[b].begin() + from, share.end(values) - share.begin(values),
                all[b].begin() + share.begin(values));
  }
}

/// The values of all parameters by the definition, tensor by tensor.
struct definition {
  definition(const layer_list<float>& layers, const buckets& initial) {
    for (std::size_t l = 0; l < layers.size(); ++l)
      for (const auto& p : layers[l]->parameters()) {
        tensors.push_back({l, p.offset, p.dims.size() == 2, {}});
        for (std::int64_t i = 0; i < p.values(); ++i)
          tensors.back().values.push_back(
            {initial[l][static_cast<std::size_t>(p.offset + i)]});
      }
  }

  /// \param gradients summed over samples
  void update(const optimizer_options& o, double rate, const buckets& gradients,
              double samples, double factor) {
    for (auto& t : tensors)
      for (std::size_t i = 0; i < t.values.size(); ++i)
        t.values[i].update(o, rate,
                           factor * static_cast<double>(at(gradients, t, i)) / samples,
                           t.matrix || !o.decay_only_matrices);
  }

  /// The largest difference, relative to the larger of 1 and the value.
  double apart(const buckets& parameters) const {
    double most = 0;
    for (const auto& t : tensors)
      for (std::size_t i = 0; i < t.values.size(); ++i) {
        const double exact = t.values[i].value;
        most =
          std::max(most, std::abs(static_cast<double>(at(parameters, t, i)) - exact)
                           / std::max(1.0, std::abs(exact)));
      }
    return most;
  }

  struct tensor {
    std::size_t layer;
    std::int64_t offset;
    bool matrix;
    std::vector<plain::weight> values;
  };

  static float at(const buckets& all, const tensor& t, std::size_t i) {
    return all[t.layer][static_cast<std::size_t>(t.offset) + i];
  }

  std::vector<tensor> tensors;
};

} // namespace

TEST_CASE("updates are the papers', of any share in any arrays", "[optimizer]") {
  dice d{static_cast<unsigned>(GENERATE(range(0, 60)))};
  const auto options = some_options(d);
  const auto layers = several_tensors();
  const int owned_by = d.number(1, 4);
  // An owner's share has another index in each bucket.
  const auto shares_of_owner = [&](int owner) {
    bucket_shares result;
    for (std::size_t b = 0; b < layers.size(); ++b)
      result.push_back({(owner + static_cast<int>(b)) % owned_by, owned_by});
    return result;
  };
  const auto pick = [&] {
    return d.coin() ? bucket_extent::whole : bucket_extent::share;
  };
  const auto of_gradients = pick(), of_parameters = pick();
  constexpr int total = 100;
  memory_account account;
  std::vector<optimizer> owners;
  for (int i = 0; i < owned_by; ++i)
    owners.emplace_back(options, layers, total, account, shares_of_owner(i),
                        of_gradients, of_parameters);
  auto parameters = random_buckets(layers, d);
  definition exact{layers, parameters};
  stream on;
  for (int samples_seen = 0; samples_seen < total;) {
    const int samples = std::min(d.number(1, 30), total - samples_seen);
    const double factor = d.coin() ? 1 : d.real(0.1, 1);
    const auto gradients = random_buckets(layers, d);
    const bool in_place = d.coin();
    for (int i = 0; i < owned_by; ++i) {
      const auto shares = shares_of_owner(i);
      const auto given = shares_of(gradients, shares, of_gradients);
      auto from = shares_of(parameters, shares, of_parameters), other = from;
      auto& to = in_place ? from : other;
      owners[static_cast<std::size_t>(i)].update(samples, factor, readable(given),
                                                 readable(from), writable(to), on);
      put_back(to, shares, of_parameters, parameters);
    }
    exact.update(options,
                 plain::rate_of(options, samples_seen, samples_seen + samples, total),
                 gradients, samples, factor);
    samples_seen += samples;
    CHECK(exact.apart(parameters) < 5e-6);
  }
}

TEST_CASE("updates of shared parameters are the papers', at the rate of all samples",
          "[optimizer]") {
  dice d{static_cast<unsigned>(GENERATE(range(100, 130)))};
  const auto options = some_options(d);
  const auto layers = several_tensors();
  constexpr int total = 100, others = 2;
  memory_account account;
  // An optimizer that updates shared parameters has only moments of the gradients given
  // to that optimizer; the other optimizer moves the parameters too.
  std::vector<optimizer> all;
  auto parameters = random_buckets(layers, d);
  for (int i = 0; i < others; ++i)
    all.emplace_back(options, layers, total, account);
  std::vector<definition> exact(others, {layers, parameters});
  stream on;
  for (int samples_seen = 0; samples_seen < total;) {
    const int samples = std::min(d.number(1, 20), total - samples_seen);
    const auto who = static_cast<std::size_t>(d.number(0, others - 1));
    const auto gradients = random_buckets(layers, d);
    all[who].update_shared(samples_seen, samples, 1, readable(gradients),
                           writable(parameters), on);
    exact[who].update(
      options, plain::rate_of(options, samples_seen, samples_seen + samples, total),
      gradients, samples, 1);
    samples_seen += samples;
    CHECK(exact[who].apart(parameters) < 5e-6);
    for (std::size_t t = 0; t < exact[who].tensors.size(); ++t)
      for (std::size_t i = 0; i < exact[who].tensors[t].values.size(); ++i)
        exact[1 - who].tensors[t].values[i].value =
          exact[who].tensors[t].values[i].value;
  }
}

TEST_CASE("rates are those of the definition, wherever an update begins and ends",
          "[optimizer]") {
  dice d{7};
  for (int i = 0; i < 1000; ++i) {
    const auto options = some_options(d);
    const int total = d.number(31, 500), first = d.number(0, total - 1),
              last = d.number(first + 1, total);
    CHECK(std::abs(options.rate * options.schedule.factor(first, last, total)
                   - plain::rate_of(options, first, last, total))
          < 1e-12);
  }
}

TEST_CASE("gradients are clipped as the definition says, short ones too",
          "[optimizer]") {
  dice d{8};
  for (int i = 0; i < 1000; ++i) {
    const double limit = std::pow(10, d.real(-7, 2)),
                 norm = std::pow(10, d.real(-8, 3));
    CHECK(std::abs(clip_factor(limit, norm) / plain::clipping_of(limit, norm) - 1)
          < 1e-12);
  }
}

} // namespace troupe::optimizer_definition_test
