// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/data_set.hpp"

#include <filesystem>

namespace troupe {

/// MNIST's IDX files in a folder, gzipped or not, with a hyphen or a dot before `idx`.
/// The 60,000 images of `train` are for training, the 10,000 of `t10k` for evaluation.
/// Each epoch has another order, drawn by the seed. On error one sentence.
/// \param split true: only the t10k pair is read. The first nine tenths are for
/// training, the last tenth for evaluation
/// \param within folder that must hold every file, after all links; empty: any folder
tl::expected<std::shared_ptr<const data_set>, std::string>
mnist_data(const std::filesystem::path& folder, std::uint64_t seed, bool split = false,
           const std::filesystem::path& within = {});

/// True if a folder has a file of images with a name that mnist_data() reads, of
/// `train` or of `t10k`. Labels are not looked for.
bool has_mnist(const std::filesystem::path& folder);

} // namespace troupe
