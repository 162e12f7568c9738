// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/job_line.hpp"

#include <utility>

namespace troupe {

void job_line::add(device_job next) {
  const auto turn = next.item.turn;
  if (turn != no_turn && turn != turn_) {
    early_.emplace(turn, std::move(next));
    return;
  }
  line_.push_back(std::move(next));
  if (turn == no_turn)
    return;
  ++turn_;
  for (auto first = early_.begin(); first != early_.end() && first->first == turn_;
       first = early_.erase(first), ++turn_)
    line_.push_back(std::move(first->second));
}

device_job job_line::next() {
  auto first = std::move(line_.front());
  line_.pop_front();
  return first;
}

void job_line::clear() {
  line_.clear();
  early_.clear();
}

} // namespace troupe
