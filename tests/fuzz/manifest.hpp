// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/checkpoints/checkpoint_manifest.hpp"
#include "kernels/checksum.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace fuzz {

/// Takes bytes of anybody for the manifest of a checkpoint, with a right sum, so that
/// what is behind it is reached too. \throws std::logic_error if what it says is said
/// otherwise once more
inline void take_manifest(std::span<const std::uint8_t> bytes) {
  using namespace troupe;
  using nlohmann::json;
  const auto text_of = [](const json& all) {
    return all.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  std::string text{bytes.begin(), bytes.end()};
  try {
    (void)facts_in(text);
    auto given = json::parse(text, nullptr, false);
    if (given.is_object()) {
      given.erase("xxh3");
      const auto said = text_of(given);
      running_checksum sum;
      sum.add(std::as_bytes(std::span{said}));
      given["xxh3"] = text_of_sum(sum.value());
      text = text_of(given);
    }
    const auto again = manifest_of(facts_in(text));
    if (manifest_of(facts_in(again)) != again)
      throw std::logic_error("a manifest changes from one reading to the next");
  } catch (const broken_checkpoint&) { // NOLINT(bugprone-empty-catch)
  }
}

} // namespace fuzz
