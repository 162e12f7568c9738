// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// An option that affects the numeric results of a training. The value may differ from
/// the checkpoint's if --change names the option.
struct changeable_option {
  /// "--lr", or the key of a recorded value that is no option: "clip of",
  /// "TROUPE_BF16".
  std::string_view option;
  std::string_view name; ///< The name for --change: "lr".
};

/// The table of all options that --change may name. The span stays valid until the
/// program ends.
std::span<const changeable_option> changeable_options();

/// The names that --change accepts, each once, for messages: "data, seed".
std::string changeable_names();

} // namespace troupe
