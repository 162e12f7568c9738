// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/shape.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

// Weight rules: which version of the parameters each microbatch reads.

namespace troupe {

/// The version that the forward of `microbatch` reads at `stage`, if an update covers
/// `update_every` microbatches. Holds a plain function, a function with captured
/// values, or no function.
class version_formula {
public:
  using plain = int (*)(const shape& dims, int stage, int microbatch, int update_every);
  using any = std::function<std::remove_pointer_t<plain>>;

  // Constants of weight rules must be initialised before any dynamic initialiser reads
  // a constant.
  constexpr version_formula(std::nullptr_t = nullptr) {}

  /// \param formula a function or callable with the arguments of `plain`
  template <class Formula>
  requires std::is_invocable_r_v<int, Formula, const shape&, int, int, int> &&(
    !std::is_same_v<std::remove_cvref_t<Formula>,
                    version_formula>)constexpr version_formula(Formula formula) {
    if constexpr (std::is_convertible_v<Formula, plain>)
      plain_ = formula;
    else
      any_ = std::make_shared<const any>(std::move(formula));
  }

  explicit operator bool() const { return plain_ != nullptr || any_ != nullptr; }

  /// Returns the version. Microbatches and versions count from the start of training,
  /// also in a resumed run.
  /// \pre the formula holds a function
  int operator()(const shape& dims, int stage, int microbatch, int update_every) const {
    return plain_ != nullptr ? plain_(dims, stage, microbatch, update_every)
                             : (*any_)(dims, stage, microbatch, update_every);
  }

private:
  plain plain_ = nullptr;
  std::shared_ptr<const any> any_;
};

/// The rule that selects the version of a stage's parameters for each microbatch.
/// Version v is the result of v updates of that stage, counted from the start of
/// training.
struct weight_rule {
  std::string_view name;
  /// The version that a forward reads; never decreases with the microbatch.
  /// Microbatches and versions count from the start of training, also in a resumed run.
  /// A backward reads the version that the forward read. Without a formula, forward and
  /// backward each read the newest version, and no version is kept.
  version_formula reads;
  /// True if microbatches read the result of all earlier batches, so that no gradient
  /// is stale.
  bool flushes = false;
};

namespace weights {

/// The version after the updates of all earlier batches, and before any update of this
/// batch.
extern const weight_rule flush;

/// The version that is newest when a forward or a backward begins; backwards may read
/// another version than the forward.
extern const weight_rule latest;

} // namespace weights

} // namespace troupe
