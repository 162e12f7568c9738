// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/schedule_path.hpp"

#include "experiments/options/parsing.hpp"
#include "models/input_file.hpp"

#include <filesystem>
#include <stdexcept>

namespace troupe {

namespace {

constexpr std::string_view prefix = "file:";

} // namespace

bool names_file(const std::string& text) {
  return text.starts_with(prefix);
}

std::string path_of_schedule(const std::string& text) {
  return text.substr(prefix.size(), text.find(',') - prefix.size());
}

tl::expected<std::string, std::string> read_schedule_file(const std::string& path) {
  constexpr std::int64_t largest = 256 << 20;
  const auto file = input_file::open(path, "the schedule file");
  if (!file)
    return tl::unexpected{file.error()};
  if (file->size() > largest)
    return tl::unexpected{"the schedule file " + path
                          + " is larger than 256 MiB, the most that is read"};
  try {
    return without_byte_order_mark(file->content());
  } catch (const std::runtime_error& error) {
    return tl::unexpected{std::string{error.what()}};
  }
}

tl::expected<filed_schedule, std::string>
schedule_in(const std::string& path, const std::string& text,
            const std::map<std::string, std::string>& values) {
  const auto file = std::filesystem::path{path}.filename().string();
  return read_schedule(std::string{prefix} + file, text, values);
}

} // namespace troupe
