#pragma once

#include "models/data/data_set.hpp"

#include <filesystem>

namespace troupe {

/// MNIST's IDX files in a folder, gzipped or not. With all four, the 60,000 images are
/// for training and the 10,000 for evaluation; with the t10k pair alone its first 9,000
/// and its last 1,000. Each epoch has an order of its own, drawn by the seed.
tl::expected<std::shared_ptr<const data_set>, std::string>
mnist_data(const std::filesystem::path& folder, std::uint64_t seed);

} // namespace troupe
