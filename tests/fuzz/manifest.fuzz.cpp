// Any text, as the manifest of a checkpoint: tests/fuzz/run.

#include "actors/checkpoints/checkpoint_manifest.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  try {
    const auto facts = facts_in(std::string{data, data + size});
    const auto text = manifest_of(facts);
    if (manifest_of(facts_in(text)) != text)
      std::abort();
  } catch (const broken_checkpoint&) { // NOLINT(bugprone-empty-catch)
  }
  return 0;
}
