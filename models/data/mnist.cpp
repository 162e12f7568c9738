// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/mnist.hpp"

#include "models/data/shuffle.hpp"
#include "models/file_format.hpp"
#include "models/file_within.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace troupe {

namespace {

namespace fs = std::filesystem;
using bytes = std::vector<unsigned char>;
using problem = tl::unexpected<std::string>;

constexpr std::int64_t pixels = 28 * 28;

/// The whole content of a file, unpacked if the file is gzipped.
tl::expected<bytes, std::string> read(const fs::path& path, const fs::path& within) {
  const auto opened = open_within(path, "the images or labels", within);
  if (!opened)
    return problem{opened.error()};
  if (const auto format = format_of(*opened); format && format->name != "a gzip file")
    return problem{path.string() + " is " + format->name + ", not images or labels"};
  const auto file = gzdopen(dup(opened->number()), "rb"); // gzclose closes the copy
  if (file == nullptr)
    return problem{"cannot read " + path.string()};
  bytes result;
  std::array<unsigned char, 1 << 16> block{};
  int count = 0;
  while ((count = gzread(file, block.data(), block.size())) > 0)
    result.insert(result.end(), block.begin(), block.begin() + count);
  if (gzclose(file) != Z_OK || count < 0)
    return problem{path.string() + " is damaged: it cannot be unpacked"};
  return result;
}

std::int64_t big_endian(const bytes& from, std::size_t offset) {
  std::int64_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value = value << 8 | from[offset + i];
  return value;
}

/// The values behind an IDX header of unsigned bytes. \param dims the sizes after the
/// first
tl::expected<bytes, std::string> values_of(const fs::path& path, const bytes& file,
                                           const std::vector<std::int64_t>& dims) {
  const auto header = 8 + 4 * dims.size();
  const auto error = [&](const std::string& detail) {
    return problem{path.string() + " is not an IDX file of MNIST: " + detail};
  };
  if (file.size() < header)
    return error("it is shorter than its header");
  if (big_endian(file, 0) != static_cast<std::int64_t>(0x801 + dims.size()))
    return error("its magic number is " + std::to_string(big_endian(file, 0)));
  std::int64_t values = big_endian(file, 4);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (big_endian(file, 8 + 4 * i) != dims[i])
      return error("its images are not 28 by 28");
    values *= dims[i];
  }
  if (static_cast<std::int64_t>(file.size() - header) != values)
    return error("it has " + std::to_string(file.size() - header)
                 + " bytes of data, but by its header " + std::to_string(values));
  return bytes(file.begin() + static_cast<std::ptrdiff_t>(header), file.end());
}

struct images {
  bytes pixels; // 28 * 28 each
  bytes labels;

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

/// The path of a file in a folder, gzipped or not; empty if the folder has no such
/// file.
/// \param name "train-images-idx3-ubyte", where the file's name may have a dot before
/// "idx"
tl::expected<fs::path, std::string> find(const fs::path& folder,
                                         const std::string& name) {
  auto dotted = name; // as the files in some archives are called
  dotted[dotted.rfind("-idx")] = '.';
  for (const auto& file : {name, name + ".gz", dotted, dotted + ".gz"}) {
    std::error_code unknown;
    if (fs::exists(folder / file, unknown))
      return folder / file;
    if (unknown)
      return problem{"cannot read the folder " + folder.string() + ": "
                     + unknown.message()};
  }
  return fs::path{};
}

/// \param prefix "train" or "t10k"
/// \param sum receives the bytes of both files, unpacked
tl::expected<images, std::string> read_pair(const fs::path& folder,
                                            const std::string& prefix,
                                            const fs::path& within, content_sum& sum) {
  const auto part =
    [&](const std::string& kind,
        const std::vector<std::int64_t>& dims) -> tl::expected<bytes, std::string> {
    const auto path = find(folder, prefix + kind);
    if (!path)
      return problem{path.error()};
    if (path->empty())
      return problem{folder.string() + " has no " + prefix + kind + ", gzipped or not"
                     + (prefix == "train"
                          ? "; mnist:FOLDER,split=t10k trains on nine tenths of t10k"
                          : "")};
    const auto file = read(*path, within);
    if (file)
      sum.add(std::as_bytes(std::span{*file}));
    return file ? values_of(*path, *file, dims) : file;
  };
  auto pictures = part("-images-idx3-ubyte", {28, 28});
  if (!pictures)
    return problem{pictures.error()};
  auto labels = part("-labels-idx1-ubyte", {});
  if (!labels)
    return problem{labels.error()};
  images result{std::move(*pictures), std::move(*labels)};
  if (static_cast<std::int64_t>(result.pixels.size()) != result.count() * pixels)
    return problem{folder.string() + " has " + std::to_string(result.count()) + " "
                   + prefix + " labels for "
                   + std::to_string(result.pixels.size() / pixels) + " images"};
  if (result.count() == 0)
    return problem{folder.string() + " has no " + prefix
                   + " images, as the headers of its files count 0"};
  if (std::ranges::max(result.labels) > 9)
    return problem{folder.string() + " has " + prefix + " labels that are not digits"};
  return result;
}

class mnist : public data_set {
public:
  mnist(images training, images held_out, data_identity identity, std::uint64_t seed)
    : training_(std::move(training)),
      held_out_(std::move(held_out)),
      identity_(std::move(identity)),
      order_(training_.count(), seed) {
    // nop
  }

  std::optional<sample_shape> one_sample() const override {
    return sample_shape{pixels};
  }

  void training(std::int64_t index, const sample_view& to) const override {
    copy(training_, order_.item_at(index), to);
  }

  std::int64_t evaluation_size() const override { return held_out_.count(); }

  void evaluation(std::int64_t index, const sample_view& to) const override {
    copy(held_out_, index, to);
  }

  std::optional<std::int64_t> epoch() const override { return training_.count(); }

  std::optional<data_identity> identity() const override { return identity_; }

  std::string description() const override {
    return "MNIST, " + std::to_string(training_.count()) + " images, "
           + std::to_string(held_out_.count()) + " held out";
  }

private:
  static void copy(const images& from, std::int64_t index, const sample_view& to) {
    const auto* picture = from.pixels.data() + index * pixels;
    for (std::int64_t i = 0; i < pixels; ++i)
      to.pixels[i] = static_cast<float>(picture[i]) / 255;
    to.labels[0] = from.labels[static_cast<std::size_t>(index)];
  }

  images training_;
  images held_out_;
  data_identity identity_;
  epoch_shuffle order_;
};

/// Splits the last tenth off `from`, and returns that tenth.
images split_off(images& from) {
  const auto kept = from.count() - from.count() / 10;
  const auto first_pixel = from.pixels.begin() + kept * pixels;
  const auto first_label = from.labels.begin() + kept;
  images result{{first_pixel, from.pixels.end()}, {first_label, from.labels.end()}};
  from.pixels.erase(first_pixel, from.pixels.end());
  from.labels.erase(first_label, from.labels.end());
  return result;
}

} // namespace

tl::expected<std::shared_ptr<const data_set>, std::string>
mnist_data(const fs::path& folder, std::uint64_t seed, bool split,
           const fs::path& within) {
  content_sum sum;
  auto test = read_pair(folder, "t10k", within, sum);
  if (!test)
    return problem{test.error()};
  if (split) {
    if (test->count() < 10)
      return problem{folder.string() + " has fewer than 10 images"};
    auto held_out = split_off(*test);
    return std::make_shared<mnist>(std::move(*test), std::move(held_out),
                                   sum.identity("MNIST's t10k images"), seed);
  }
  auto training = read_pair(folder, "train", within, sum);
  if (!training)
    return problem{training.error()};
  return std::make_shared<mnist>(std::move(*training), std::move(*test),
                                 sum.identity("MNIST images"), seed);
}

bool has_mnist(const fs::path& folder) {
  return std::ranges::any_of(
    std::array{"train-images-idx3-ubyte", "t10k-images-idx3-ubyte"},
    [&](const char* name) {
      const auto path = find(folder, name);
      return path && !path->empty();
    });
}

} // namespace troupe
