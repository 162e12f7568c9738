#include "models/data/text.hpp"

#include "models/input_file.hpp"

#include <algorithm>
#include <vector>

namespace troupe {

namespace {

namespace fs = std::filesystem;
using bytes = std::vector<std::uint8_t>;

/// The file itself, or all in a folder, in order of name.
tl::expected<std::vector<fs::path>, std::string> files_of(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_directory(path, failed))
    return std::vector{path};
  std::vector<fs::path> result;
  fs::directory_iterator entry{path, failed};
  for (const fs::directory_iterator end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code unknown; // of one that is gone, say
    if (entry->is_regular_file(unknown))
      result.push_back(entry->path());
  }
  if (failed)
    return tl::unexpected{"cannot read the folder " + path.string() + ": "
                          + failed.message()};
  std::ranges::sort(result);
  return result;
}

tl::expected<bytes, std::string> read_all(const fs::path& path) {
  const auto files = files_of(path);
  if (!files)
    return tl::unexpected{files.error()};
  bytes result;
  for (const auto& each : *files) {
    const auto file = input_file::open(each, "the text");
    if (!file)
      return tl::unexpected{file.error()};
    const auto before = result.size();
    result.resize(before + static_cast<std::size_t>(file->size()));
    file->read(0, result.data() + before, file->size());
  }
  return result;
}

} // namespace

tl::expected<std::shared_ptr<const data_set>, std::string>
text_data(const fs::path& path, text_order order, std::int64_t length,
          std::int64_t words, std::uint64_t seed) {
  auto read = read_all(path);
  if (!read)
    return tl::unexpected{read.error()};
  const auto owner = std::make_shared<const bytes>(std::move(*read));
  auto data = windows_of<std::uint8_t>(
    {*owner, owner, "text " + path.filename().string(), "byte"}, order, length, words,
    seed);
  if (!data)
    return tl::unexpected{path.string() + " " + data.error()};
  return data;
}

} // namespace troupe
