// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/setup.hpp"

#include <string>

namespace tiny {

using namespace troupe;

/// Options of a GPT that trains within a millisecond.
inline typed_options options_of(const std::string& schedules) {
  typed_options o;
  o.model = {.layers = 4, .width = 8, .heads = 2, .length = 4, .words = 7};
  o.schedules.names = {schedules};
  return o;
}

/// The runs that options ask for when a program parses them.
inline tl::expected<setup, std::string> set_up_training(const typed_options& typed) {
  return parse(typed, true).and_then(set_up);
}
inline tl::expected<setup, std::string> set_up_simulation(const typed_options& typed) {
  return parse(typed, false).and_then(set_up);
}

} // namespace tiny
