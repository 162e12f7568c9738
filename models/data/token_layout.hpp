// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/input_file.hpp"

#include <tl/expected.hpp>

#include <cstdint>
#include <string>

namespace troupe {

/// The layout of a file's tokens.
struct token_layout {
  std::int64_t begin = 0; ///< Offset of the first token, in bytes.
  std::int64_t width = 2; ///< Bytes a token.
  std::int64_t count = 0; ///< Number of tokens.
};

/// Returns the end of a sentence about a file that holds no tokens: a file of a known
/// other format, or with a `width` of 0 a text. Empty if the file may hold tokens.
/// \param width bytes a token, 2 or 4; 0: not given
std::string other_content(const input_file& file, std::int64_t width);

/// The layout by the file's header; without a header of llm.c, by the file's size. On
/// error the end of a sentence about the file.
/// \param width bytes a token, 2 or 4; 0: as the header says, else 2. A header of
/// another width is an error
tl::expected<token_layout, std::string> layout_of(const input_file& file,
                                                  std::int64_t width);

} // namespace troupe
