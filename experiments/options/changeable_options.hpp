// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// An option that decides a training's numbers and may differ from the checkpoint's, if
/// --change names it.
struct changeable_option {
  std::string_view option; ///< "--lr", or what a schedule says of that.
  std::string_view name;   ///< For --change: "lr".
};

std::span<const changeable_option> changeable_options();

/// Their names, for people: "data, seed".
std::string changeable_names();

} // namespace troupe
