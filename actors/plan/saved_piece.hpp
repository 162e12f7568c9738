// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/plan/run_plan.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace troupe {

/// An array of the whole network that a checkpoint has: a version of the parameters, or
/// a moment of the optimizer.
struct saved_array {
  enum class kind : std::uint8_t { parameters, moment };

  kind what = kind::parameters;
  int number = 0; ///< The age of a version, 0 the newest; or which moment.

  auto operator<=>(const saved_array&) const = default;
};

/// "parameters", "parameters-1" for the last version but one, "moment-0".
std::string name_of(const saved_array& array);

/// Values of one parameter that one stage saves. They are row-major values of its part
/// of the parameter, from `begin` to `end`: all of them, or a data replica's share.
struct saved_piece {
  std::size_t layer;  ///< Of the network.
  std::size_t bucket; ///< Of the stage.
  parameter of;       ///< The part that the stage holds, cut as its layer is.
  std::int64_t begin;
  std::int64_t end;

  std::int64_t values() const { return end - begin; }
  bool is_whole_part() const { return values() == of.values(); }
};

/// Who saves what several stages hold: the first of them, or each that has it.
enum class savers : std::uint8_t { first, all };

/// What a stage saves of every version (`parameters`) or moment (`optimizer_state`), so
/// that of all stages of all data replicas (`savers::all`: of each) every value is
/// saved once, a tied matrix by the layer that it belongs to.
std::vector<saved_piece> pieces_of(const run_plan& plan, position where,
                                   shared_out what, savers who = savers::first);

/// Values of all of those.
std::int64_t values_of(const std::vector<saved_piece>& pieces);

/// Calls run(in the whole parameter, in the piece, count) for values of a piece that
/// stand side by side in both.
void for_each_run(const saved_piece& piece,
                  const std::function<void(std::int64_t there, std::int64_t here,
                                           std::int64_t count)>& run);

} // namespace troupe
