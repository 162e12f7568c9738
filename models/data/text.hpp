#pragma once

#include "models/data/data_set.hpp"

#include <filesystem>

namespace troupe {

/// Which windows of a text training sees.
enum class text_order : std::uint8_t {
  random,     ///< Windows drawn by the seed from the first 90% of the bytes.
  sequential, ///< Sample k is bytes kT to kT+T of the whole text, wrapping.
};

/// Bytes of a file, or of all files in a folder in order of name, as tokens. A sample
/// is a window of T tokens; its labels are the bytes that follow each. The last 10% of
/// the bytes, cut into windows, is for evaluation.
tl::expected<std::shared_ptr<const data_set>, std::string>
text_data(const std::filesystem::path& path, text_order order, std::int64_t length,
          std::int64_t words, std::uint64_t seed);

} // namespace troupe
