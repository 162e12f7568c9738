// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/files/schedule_file.hpp"

#include <map>
#include <string>

namespace troupe {

/// True if the text of a schedule names a file: "file:my.csv,weights=stash".
bool names_file(const std::string& text);

/// The path in the text of a schedule that names a file, up to the first comma.
/// \pre names_file(text)
std::string path_of_schedule(const std::string& text);

/// Reads the text of a schedule file of at most 256 MiB. The error is one sentence.
tl::expected<std::string, std::string> read_schedule_file(const std::string& path);

/// Parses the text of a schedule file. The error is one sentence.
/// \param path path of the file, which is not read; the file's name becomes a part of
/// the schedule's name
/// \param values the parameters after the path
tl::expected<filed_schedule, std::string>
schedule_in(const std::string& path, const std::string& text,
            const std::map<std::string, std::string>& values);

} // namespace troupe
