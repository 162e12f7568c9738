// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <CLI/CLI.hpp>

#include <istream>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

/// What is wrong with a file of options, and in which line.
struct config_mistake : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The part of TOML that says options: an option and its value a line, comments behind
/// #. A value is a text in quotes, a number, true, false, or a list of these in
/// brackets, which may go on in further lines. Sections say nothing here and are
/// refused, as is an option that stands there twice.
class config_reader : public CLI::ConfigTOML {
public:
  /// \param app whose options these are; outlives the reader
  explicit config_reader(const CLI::App& app) : app_(app) {}

  /// \throws config_mistake
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

private:
  const CLI::App& app_;
};

/// What is wrong with the path of such a file; empty if it can be read.
std::string unreadable(const std::string& path);

} // namespace troupe
