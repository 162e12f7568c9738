// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/shape.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace troupe {

/// The version that the forward of `microbatch` reads at `stage`, when an update covers
/// `update_every` microbatches: a function, with whatever it needs, or none.
class version_formula {
public:
  using plain = int (*)(const shape& dims, int stage, int microbatch, int update_every);
  using any = std::function<std::remove_pointer_t<plain>>;

  // Constants of rules are there before anybody asks for one.
  constexpr version_formula(std::nullptr_t = nullptr) {}

  /// \param formula any that can be called so
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

  int operator()(const shape& dims, int stage, int microbatch, int update_every) const {
    return plain_ != nullptr ? plain_(dims, stage, microbatch, update_every)
                             : (*any_)(dims, stage, microbatch, update_every);
  }

private:
  plain plain_ = nullptr;
  std::shared_ptr<const any> any_;
};

/// Which version of a stage's parameters a microbatch reads. Version v is what v
/// updates of that stage have made of the initial values.
struct weight_rule {
  std::string_view name;
  /// Never decreases in the microbatch. None: the newest there is, again for the
  /// backward; nobody keeps a version. Otherwise the backward reads what its forward
  /// read.
  version_formula reads;
  /// Microbatches read what all batches before theirs have made, so that no gradient is
  /// stale.
  bool flushes = false;
};

namespace weights {

/// The updates of all batches before, and of no microbatch of this one.
extern const weight_rule flush;

/// Whatever is newest when a forward or a backward begins.
extern const weight_rule latest;

} // namespace weights

} // namespace troupe
