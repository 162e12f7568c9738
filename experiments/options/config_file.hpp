// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <CLI/CLI.hpp>

#include <istream>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

/// A mistake in a file of options: one sentence that begins with the number of the
/// line.
struct config_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads the part of TOML that options need: an option and its value on a line,
/// comments after #. A value is a text in quotes, a number, true, false, or a list of
/// values in brackets, which may span several lines. Sections have no meaning here and
/// are refused, and so is an option that appears twice.
class config_reader : public CLI::ConfigTOML {
public:
  /// \param app the application whose options the file sets; outlives this object
  explicit config_reader(const CLI::App& app) : app_(app) {}

  /// Parses a whole file.
  /// \throws config_error if the file has a mistake
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

private:
  const CLI::App& app_;
};

/// One sentence if `path` names no readable file of options; empty if the file can be
/// read.
std::string read_error(const std::string& path);

} // namespace troupe
