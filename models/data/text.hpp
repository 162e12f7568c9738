#pragma once

#include "models/data/windows.hpp"

#include <filesystem>

namespace troupe {

/// Bytes of a file, or of all files in a folder in order of name, as tokens.
tl::expected<std::shared_ptr<const data_set>, std::string>
text_data(const std::filesystem::path& path, text_order order, std::int64_t length,
          std::int64_t words, std::uint64_t seed);

} // namespace troupe
