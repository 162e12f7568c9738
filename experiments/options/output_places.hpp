// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// A file or folder that a program reads or writes, and the option that names it.
struct named_file {
  enum class kind : std::uint8_t {
    file,
    folder,
    shared_folder, ///< May be a folder of another option too.
  };

  std::string option;
  std::filesystem::path path;
  kind type = kind::file;
};

/// Returns one sentence if two places of `written` are the same, or if one is a file
/// and another is in a folder of that name. Also if a file of `written` occurs in
/// `read` too, or lies directly in a folder of `read`. Else returns an empty text.
/// Links and other spellings of a path count as the same file.
std::string written_twice(const std::vector<named_file>& written,
                          const std::vector<named_file>& read);

/// One sentence with the option if a file cannot be written at the named path, else an
/// empty text. Standard streams and other open descriptors (/dev/stdout, /dev/fd/3) are
/// refused. An existing file stays unchanged.
std::string write_error(const named_file& file);

/// Makes a new folder with this name, and missing parent folders. If a folder of this
/// name exists, appends -2, else -3, and so on. Returns the path of the new folder.
/// \param failed holds no error before the call; receives the error of a failure, after
/// which the returned path means nothing
std::filesystem::path make_new_folder(const std::filesystem::path& name,
                                      std::error_code& failed);

/// Makes a new folder whose name is `start` and the local time:
/// "runs/compare-20260101-120000". The rest is as for make_new_folder().
std::filesystem::path make_dated_folder(const std::string& start,
                                        std::error_code& failed);

} // namespace troupe
