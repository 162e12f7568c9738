// Any text, as the manifest of a checkpoint: tests/fuzz/run.

#include "actors/checkpoints/checkpoint_manifest.hpp"
#include "messaging/links/checksum.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  try {
    auto given = nlohmann::json::parse(data, data + size, nullptr, false);
    if (given.is_object()
        && given.contains("xxh3")) { // so that what is behind it is reached too
      given.erase("xxh3");
      const auto said =
        given.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      running_checksum sum;
      sum.add(std::as_bytes(std::span{said}));
      given["xxh3"] = text_of_sum(sum.value());
    }
    const auto facts =
      facts_in(given.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    const auto text = manifest_of(facts);
    if (manifest_of(facts_in(text)) != text)
      std::abort();
  } catch (const broken_checkpoint&) { // NOLINT(bugprone-empty-catch)
  }
  return 0;
}
