// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/windows.hpp"

#include <filesystem>

namespace troupe {

/// Tokens in files in the forms of nanoGPT and llm.c. A file of nanoGPT: 16 bits each,
/// little-endian, nothing else. A file of llm.c: a header of 256 int32, then the
/// tokens.
///
///   int32   0 magic      1 version   2 number of tokens   3 to 255
///           20240520     1           n                    0          16 bits a token
///           20240801     7           n                    0          32 bits a token
///
/// A file without that header is refused if its numbers look wider than 2 bytes and
/// `width` is 0. With a `width` of 4 such a file is refused if its numbers look wider
/// than 4 bytes. A `width` of 2 accepts any numbers. A file of a known other format,
/// for example numpy's, is refused too. With a `width` of 0, a file that begins as a
/// text of 64 bytes or more is refused.
///
/// Files of a folder or pattern (data_files.hpp) are one text, in order of name, and
/// all files have tokens of one width. Files of a folder in other formats are left out,
/// except that a pointer of Git LFS is an error. Files to train on together with files
/// to evaluate on, by name, are refused. On error one sentence.
///
/// Each file is mapped into memory, so only pages in use occupy memory. Opening a file
/// reads all tokens once, and checks that each token is below `words`. Each read of a
/// sample repeats the check, as another program may write to the file. No file may
/// become shorter while the data set is in use.
/// \param width bytes a token, 2 or 4; 0: as the header says, else 2. A header of
/// another width is an error
/// \param within folder that must hold every file, after all links; empty: any folder
tl::expected<std::shared_ptr<const data_set>, std::string>
token_data(const std::filesystem::path& path, text_order order, std::int64_t length,
           std::int64_t words, std::uint64_t seed, std::int64_t width = 0,
           const std::filesystem::path& within = {});

} // namespace troupe
