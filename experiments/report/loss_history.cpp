// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/loss_history.hpp"

namespace troupe {

loss_history::loss_history(std::int64_t before, std::size_t apart)
  : first_(before), start_(before), last_(before), apart_(apart) {
  // nop
}

void loss_history::merge(entry& a, const entry& b) {
  const auto all = a.samples + b.samples;
  a.loss =
    (a.loss * static_cast<double>(a.samples) + b.loss * static_cast<double>(b.samples))
    / static_cast<double>(all);
  a.samples = all;
  a.end = b.end;
}

void loss_history::add(const std::vector<loss_so_far>& losses) {
  for (const auto& one : losses) {
    const auto end = start_ + one.samples;
    newest_.push_back({one.loss, end - last_, end});
    known_ += end - last_;
    last_ = end;
    if (newest_.size() <= apart_)
      continue;
    settled_.add(newest_.front(), merge);
    newest_.pop_front();
  }
}

void loss_history::begin_again(std::int64_t before) {
  while (!newest_.empty() && newest_.back().end > before) {
    known_ -= newest_.back().samples;
    newest_.pop_back();
  }
  // An entry that ends later cannot be divided, so the whole entry is unknown.
  settled_.remove_last([&](const entry& one) {
    if (one.end > before)
      known_ -= one.samples;
    return one.end > before;
  });
  start_ = last_ = before;
}

loss_history::series loss_history::all() const {
  auto whole = settled_;
  for (const auto& one : newest_)
    whole.add(one, merge);
  series result;
  for (const auto& one : whole.entries()) {
    result.loss.push_back(one.loss);
    result.samples.push_back(one.end);
  }
  result.every = whole.every();
  result.missing = last_ - first_ - known_;
  result.before = first_;
  return result;
}

} // namespace troupe
