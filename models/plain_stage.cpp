// SPDX-License-Identifier: BSD-3-Clause
#include "models/plain_stage.hpp"

#include "kernels/device.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

std::vector<std::vector<gradient_bucket>> made_of(const plain_plan& plan,
                                                  const layer_list<float>& layers,
                                                  std::size_t first_layer) {
  std::vector<std::vector<gradient_bucket>> result;
  for (std::size_t i = 0; i < layers.size(); ++i)
    result.push_back(plan.made_of ? plan.made_of(first_layer + i)
                                  : std::vector<gradient_bucket>{{layers[i]}});
  return result;
}

void add_in_order(const std::vector<float*>& arrays, std::int64_t n) {
  for (std::size_t r = 1; r < arrays.size(); ++r)
    for (std::int64_t i = 0; i < n; ++i)
      arrays[0][i] += arrays[r][i];
}

void append_copies(const std::vector<tensor_memory>& from,
                   std::vector<std::vector<float>>& to) {
  for (const auto& b : from)
    to.emplace_back(b.data(), b.data() + b.values());
}

} // namespace

plain_stage::plain_stage(const plain_plan& plan, std::size_t stage,
                         memory_account& account)
  : plan_(plan),
    layers_(plan.whole, plan.batches,
            [&](const network<float>& whole) {
              return slice<float>{whole, plan.first_layers[stage],
                                  plan.first_layers[stage + 1], plan.threads};
            }),
    account_(account),
    optimizer_(plan.optimizer, layers().layers(), plan.batches.batch * plan.steps,
               account),
    gradients_(layers().layers(),
               made_of(plan, layers().layers(),
                       static_cast<std::size_t>(plan.first_layers[stage]))) {
  const auto first_layer = static_cast<std::size_t>(plan.first_layers[stage]);
  auto& initial = versions_[0] = new_buckets();
  for (std::size_t i = 0; i < initial.size(); ++i)
    plan.weights(first_layer + i, initial[i].data());
  for (int r = 0; r < plan.replicas; ++r)
    sums_.push_back(new_buckets());
  for (int d = 0; d < plan.directions && plan.sum_microbatch; ++d)
    totals_.push_back(new_buckets());
  const auto sizes = layers_.sizes(plan.batches);
  output_ = {sizes.output, account};
  input_gradient_ = {layers().is_first() ? 0 : sizes.input, account};
  stash_ = {sizes.stash, account};
  scratch_ = {sizes.scratch, account};
}

pass<float> plain_stage::pass_on(int version, int replica, bool first_of_sum) const {
  pass<float> p;
  p.output = output_.data();
  p.stash = stash_.data();
  p.input_gradient = input_gradient_.data();
  for (const auto& bucket : versions_.at(version))
    p.parameters.emplace_back(bucket.data());
  p.gradients = writable(sums_[static_cast<std::size_t>(replica)]);
  p.beta = first_of_sum ? 0.0F : 1.0F;
  p.scratch = scratch_.data();
  return p;
}

void plain_stage::add_microbatch(bool first_of_sum) {
  for (std::size_t d = 0; d < totals_.size(); ++d)
    for (std::size_t b = 0; b < totals_[d].size(); ++b) {
      std::vector<float*> arrays;
      for (auto r = d; r < sums_.size(); r += totals_.size())
        arrays.push_back(sums_[r][b].data());
      const auto n = totals_[d][b].values();
      gradients_.sum(b, arrays, plan_.sum_microbatch);
      auto* const total = totals_[d][b].data();
      for (std::int64_t i = 0; i < n; ++i)
        total[i] = first_of_sum ? arrays[0][i] : total[i] + arrays[0][i];
    }
}

void plain_stage::save_sums() {
  for (auto* const sums : {&sums_, &totals_}) {
    auto& kept = sums == &sums_ ? saved_sums_ : saved_totals_;
    kept = std::exchange(*sums, {});
    for (std::size_t i = 0; i < kept.size(); ++i)
      sums->push_back(new_buckets());
  }
}

void plain_stage::restore_sums() {
  sums_ = std::exchange(saved_sums_, {});
  totals_ = std::exchange(saved_totals_, {});
}

void plain_stage::add_replicas() {
  if (plan_.sum_microbatch) {
    for (std::size_t b = 0; b < totals_.front().size(); ++b) {
      std::vector<float*> arrays;
      for (auto& total : totals_)
        arrays.push_back(total[b].data());
      add_in_order(arrays, totals_.front()[b].values());
      std::copy_n(arrays[0], totals_.front()[b].values(), sums_[0][b].data());
    }
    return;
  }
  for (std::size_t b = 0; b < sums_.front().size(); ++b) {
    std::vector<float*> arrays;
    for (auto& sum : sums_)
      arrays.push_back(sum[b].data());
    gradients_.sum(b, arrays, plan_.sum ? plan_.sum : add_in_order);
  }
}

std::vector<double> plain_stage::squares(stream& compute_stream) const {
  return gradients_.squares(readable(sums_[0]), compute_stream);
}

void plain_stage::update(std::int64_t samples, double factor, int oldest_needed,
                         stream& compute_stream) {
  const int from = newest();
  const auto make = [&](const auto& read, auto& written) {
    run_to_end(
      [&] {
        optimizer_.update(samples, factor, readable(sums_[0]), readable(read),
                          writable(written), compute_stream);
      },
      &compute_stream);
  };
  if (from >= oldest_needed) {
    versions_[from + 1] = new_buckets();
    make(versions_[from], versions_[from + 1]);
  } else {
    auto in_place = versions_.extract(from);
    make(in_place.mapped(), in_place.mapped());
    in_place.key() = from + 1;
    versions_.insert(std::move(in_place));
  }
  versions_.erase(versions_.begin(),
                  versions_.lower_bound(std::min(oldest_needed, from + 1)));
}

void plain_stage::collect(std::vector<std::vector<float>>& parameters,
                          std::vector<std::vector<float>>& gradients) const {
  append_copies(versions_.rbegin()->second, parameters);
  append_copies(sums_[0], gradients);
}

plain_stage::buckets plain_stage::new_buckets() const {
  buckets result;
  for (const auto& l : layers().layers())
    result.emplace_back(l->bucket(), account_);
  return result;
}

} // namespace troupe
