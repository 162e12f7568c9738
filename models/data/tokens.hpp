#pragma once

#include "models/data/windows.hpp"

#include <filesystem>

namespace troupe {

/// Tokens in a file as nanoGPT and llm.c write them. nanoGPT: 16 bits each,
/// little-endian, nothing else. llm.c: a header of 256 int32, then the tokens.
///
///   int32   0 magic      1 version   2 number of tokens   3 to 255
///           20240520     1           n                    0          16 bits a token
///           20240801     7           n                    0          32 bits a token
///
/// The file is mapped into memory, never read whole; that each token is below `words`
/// is seen once, when it is opened. It must not become shorter while it is in use.
tl::expected<std::shared_ptr<const data_set>, std::string>
token_data(const std::filesystem::path& path, text_order order, std::int64_t length,
           std::int64_t words, std::uint64_t seed);

} // namespace troupe
