// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options_text.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace fuzz {

/// Takes bytes of anybody for the options of a run that a lead sends.
inline void take_options(std::span<const std::uint8_t> bytes) {
  (void)troupe::options_from(std::string{bytes.begin(), bytes.end()});
}

} // namespace fuzz
