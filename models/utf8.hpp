// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Text from outside (names of files and hosts, command lines, messages of systems) as
// UTF-8. A file name may be any bytes, which JSON cannot hold.

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace troupe {

/// The text with U+FFFD in place of bytes that are not UTF-8.
std::string utf8(const std::string& text);

/// JSON as text, with U+FFFD in place of bytes that are not UTF-8. The content of the
/// strings causes no exception.
/// \param indent spaces of a level; -1: everything on one line
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

/// Parses JSON from outside.
/// \throws std::invalid_argument if values are nested deeper than `most_depth`, as
/// recursive writers and destructors would recurse as deep
/// \throws nlohmann::json::exception if the text is no JSON
nlohmann::json shallow_json(const std::string& text, int most_depth);

/// Parses JSON whose objects have each member once: a reader would keep one of them.
/// \throws std::invalid_argument with a sentence about a member that comes twice
/// \throws nlohmann::json::exception if the text is no JSON
nlohmann::ordered_json json_of_single_members(const std::string& text);

} // namespace troupe
