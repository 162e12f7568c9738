// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"
#include "models/data/data_set.hpp"

#include <tl/expected.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace troupe {

/// Opens the data that options name. Data that a file of weights or a checkpoint names
/// must have the identity which that keeps. Programs that only evaluate open the data
/// of --evaluate-data alone, if a user names them. On error one sentence; it says where
/// the name of the data comes from, if not from the user. \param within as open_data
/// takes it
tl::expected<std::shared_ptr<const data_set>, std::string>
opened_data(const options& o, const std::filesystem::path& within = {});

} // namespace troupe
