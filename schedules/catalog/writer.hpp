// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/placement.hpp"
#include "schedules/schedule.hpp"

#include <array>
#include <cstddef>
#include <deque>
#include <vector>

namespace troupe {

/// Writes the batch of a rank that hosts two stages, in whichever directions, as papers
/// tell such programs: the next microbatch of one stage, or of the other.
class batch_writer {
public:
  /// \param first, second as the program counts stages, 0 and 1
  batch_writer(const placement& where, const shape& dims, hosted_stage first,
               hosted_stage second)
    : where_(where), dims_(dims), stages_{first, second} {
    // nop
  }

  void forward(int which) { add(next(op::forward, which, forwards_)); }
  void backward(int which) { add(next(op::backward, which, backwards_)); }

  /// Its weight gradient comes later.
  void input_gradient(int which) {
    const auto a = next(op::input_gradient, which, backwards_);
    add(a);
    weights_.push_back({op::weight_gradient, a.direction, a.stage, a.microbatch});
  }

  /// That of the oldest input gradient that has none, of either stage or of one.
  void weight_gradient();
  void weight_gradient(int which);

  /// Of two stages, as one.
  void pair(int forwards, int backwards) {
    forward(forwards);
    actions_.back().pair = in_pair::first;
    backward(backwards);
    actions_.back().pair = in_pair::second;
  }

  int forwarded(int which) const { return forwards_[index(which)]; }
  bool owes_weight_gradients(int which) const;

  /// What was written, with the updates. Microbatches that the batch does not have are
  /// left out: programs may be written for more.
  std::vector<action> batch() &&;

private:
  static std::size_t index(int which) { return static_cast<std::size_t>(which); }

  action next(op what, int which, std::array<int, 2>& count) {
    const auto& [direction, stage] = stages_[index(which)];
    const int share = dims_.microbatches / where_.directions, k = count[index(which)]++;
    return {what, direction, stage, direction * share + k};
  }

  /// Whether an action is of a stage.
  auto of(int which) const {
    return [where = stages_[index(which)]](const action& a) {
      return hosted_stage{a.direction, a.stage} == where;
    };
  }

  void add(const action& a) { actions_.push_back(a); }

  const placement& where_;
  shape dims_;
  std::array<hosted_stage, 2> stages_;
  std::array<int, 2> forwards_{}, backwards_{};
  std::deque<action> weights_; // owed
  std::vector<action> actions_;
};

} // namespace troupe
