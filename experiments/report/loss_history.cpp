// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/loss_history.hpp"

namespace troupe {

loss_history::loss_history(std::int64_t samples_before, std::size_t apart)
  : first_(samples_before),
    start_(samples_before),
    last_(samples_before),
    apart_(apart) {
  // nop
}

void loss_history::merge(entry& a, const entry& b) {
  const auto samples = a.samples + b.samples;
  a.loss =
    (a.loss * static_cast<double>(a.samples) + b.loss * static_cast<double>(b.samples))
    / static_cast<double>(samples);
  a.samples = samples;
  a.end = b.end;
}

void loss_history::add(const std::vector<loss_so_far>& losses) {
  for (const auto& loss : losses) {
    const auto end = start_ + loss.samples;
    newest_.push_back({loss.loss, end - last_, end});
    known_ += end - last_;
    last_ = end;
    if (newest_.size() <= apart_)
      continue;
    settled_.add(newest_.front(), merge);
    newest_.pop_front();
  }
}

void loss_history::restart(std::int64_t samples_before) {
  while (!newest_.empty() && newest_.back().end > samples_before) {
    known_ -= newest_.back().samples;
    newest_.pop_back();
  }
  // An entry that ends later cannot be divided, so the whole entry is unknown.
  settled_.remove_last([&](const entry& mean_loss) {
    if (mean_loss.end > samples_before)
      known_ -= mean_loss.samples;
    return mean_loss.end > samples_before;
  });
  start_ = last_ = samples_before;
}

loss_history::series loss_history::summary() const {
  auto whole = settled_;
  for (const auto& mean_loss : newest_)
    whole.add(mean_loss, merge);
  series result;
  for (const auto& mean_loss : whole.entries()) {
    result.loss.push_back(mean_loss.loss);
    result.samples.push_back(mean_loss.end);
  }
  result.every = whole.every();
  result.missing = last_ - first_ - known_;
  result.samples_before = first_;
  return result;
}

} // namespace troupe
