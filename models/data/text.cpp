#include "models/data/text.hpp"

#include "models/random.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

namespace troupe {

namespace {

namespace fs = std::filesystem;

class text : public data_set {
public:
  text(std::string name, std::string bytes, text_order order, std::int64_t length,
       std::uint64_t seed)
    : name_(std::move(name)),
      bytes_(std::move(bytes)),
      order_(order),
      length_(length),
      draws_(seed, "text windows"),
      held_out_(size() - size() / 10) {
    // nop
  }

  void training(std::int64_t index, const sample_view& to) const override {
    if (order_ == text_order::sequential)
      copy(index % size() * length_ % size(), to);
    else
      copy(draws_.below(static_cast<std::uint64_t>(index), held_out_ - length_), to);
  }

  std::int64_t evaluation_size() const override {
    return std::max<std::int64_t>(size() - held_out_ - 1, 0) / length_;
  }

  void evaluation(std::int64_t index, const sample_view& to) const override {
    copy(held_out_ + index * length_, to);
  }

  std::optional<std::int64_t> epoch() const override {
    return (order_ == text_order::sequential ? size() : held_out_) / length_;
  }

  std::string description() const override {
    return "text " + name_ + ", " + std::to_string(size()) + " bytes"
           + (order_ == text_order::sequential ? ", in order" : ", windows at random");
  }

private:
  std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }

  std::int32_t byte(std::int64_t at) const {
    return static_cast<unsigned char>(bytes_[static_cast<std::size_t>(at % size())]);
  }

  void copy(std::int64_t begin, const sample_view& to) const {
    for (std::int64_t t = 0; t < length_; ++t) {
      to.tokens[t] = byte(begin + t);
      to.labels[t] = byte(begin + t + 1);
    }
  }

  std::string name_;
  std::string bytes_;
  text_order order_;
  std::int64_t length_;
  random_stream draws_;
  std::int64_t held_out_; // the first byte for evaluation
};

tl::expected<std::string, std::string> read(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file || fs::is_directory(path))
    return tl::unexpected{"cannot read the text " + path.string()};
  return std::string{std::istreambuf_iterator<char>{file}, {}};
}

tl::expected<std::string, std::string> read_all(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_directory(path, failed))
    return read(path);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator{path, failed})
    if (entry.is_regular_file())
      files.push_back(entry.path());
  std::ranges::sort(files);
  std::string result;
  for (const auto& file : files) {
    const auto part = read(file);
    if (!part)
      return part;
    result += *part;
  }
  return result;
}

} // namespace

tl::expected<std::shared_ptr<const data_set>, std::string>
text_data(const fs::path& path, text_order order, std::int64_t length,
          std::int64_t words, std::uint64_t seed) {
  auto bytes = read_all(path);
  if (!bytes)
    return tl::unexpected{bytes.error()};
  const auto size = static_cast<std::int64_t>(bytes->size());
  if (size == 0 || (order == text_order::random && size - size / 10 <= length))
    return tl::unexpected{
      path.string() + " has " + std::to_string(size)
      + " bytes; nine tenths of a text must be longer than a sequence of "
      + std::to_string(length)};
  const auto largest =
    std::ranges::max(*bytes, {}, [](char c) { return static_cast<unsigned char>(c); });
  if (static_cast<unsigned char>(largest) >= words)
    return tl::unexpected{path.string() + " holds byte "
                          + std::to_string(static_cast<unsigned char>(largest))
                          + "; with --vocab " + std::to_string(words) + " bytes up to "
                          + std::to_string(words - 1) + " are words"};
  return std::make_shared<text>(path.filename().string(), std::move(*bytes), order,
                                length, seed);
}

} // namespace troupe
