// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/placement.hpp"
#include "schedules/schedule.hpp"

#include <array>
#include <cstddef>
#include <deque>
#include <vector>

// A writer of programs for ranks that host two stages.

namespace troupe {

/// Writes the program of a batch for a rank that hosts two stages, of one direction or
/// of two. As in papers, each call adds the next microbatch of stage 0 or stage 1;
/// these are the constructor's stages `first` and `second`.
class batch_writer {
public:
  /// \param where outlives this object
  /// \param first, second the stages that the program counts as 0 and 1
  batch_writer(const placement& where, const shape& dims, hosted_stage first,
               hosted_stage second)
    : where_(where), dims_(dims), stages_{first, second} {
    // nop
  }

  void forward(int which) { add(next(op::forward, which, forwards_)); }
  void backward(int which) { add(next(op::backward, which, backwards_)); }

  /// Adds an input gradient; the weight gradient comes later.
  void input_gradient(int which) {
    const auto a = next(op::input_gradient, which, backwards_);
    add(a);
    weights_.push_back({op::weight_gradient, a.direction, a.stage, a.microbatch});
  }

  /// Adds the weight gradient of the oldest input gradient that has no weight gradient
  /// yet, of either stage.
  /// \pre an input gradient has no weight gradient yet
  void weight_gradient();
  /// Like weight_gradient(), for input gradients of stage `which` only.
  /// \pre an input gradient of stage `which` has no weight gradient yet
  void weight_gradient(int which);

  /// Adds a forward of stage `forwards` and a backward of stage `backwards` as one
  /// pair.
  void pair(int forwards, int backwards) {
    forward(forwards);
    actions_.back().pair = in_pair::first;
    backward(backwards);
    actions_.back().pair = in_pair::second;
  }

  /// Number of forwards of stage `which` so far.
  int forwarded(int which) const { return forwards_[index(which)]; }
  /// True if an input gradient of stage `which` has no weight gradient yet.
  bool owes_weight_gradients(int which) const;

  /// Returns the program, with an update of each stage at the end. Microbatches beyond
  /// the batch are left out, because a caller may write a program for more.
  std::vector<action> batch() &&;

private:
  static std::size_t index(int which) { return static_cast<std::size_t>(which); }

  action next(op operation, int which, std::array<int, 2>& count) {
    const auto& [direction, stage] = stages_[index(which)];
    const int share = dims_.microbatches / where_.directions, k = count[index(which)]++;
    return {operation, direction, stage, direction * share + k};
  }

  /// A predicate: whether an action belongs to stage `which`.
  auto stage_filter(int which) const {
    return [where = stages_[index(which)]](const action& a) {
      return hosted_stage{a.direction, a.stage} == where;
    };
  }

  void add(const action& a) { actions_.push_back(a); }

  const placement& where_;
  shape dims_;
  std::array<hosted_stage, 2> stages_;
  std::array<int, 2> forwards_{}, backwards_{};
  std::deque<action> weights_; // weight gradients still to write
  std::vector<action> actions_;
};

} // namespace troupe
