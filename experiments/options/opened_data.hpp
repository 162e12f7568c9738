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
/// must have the identity that is recorded there. Programs that only evaluate open the
/// data of --evaluate-data alone, if a user names data there. The error is one
/// sentence, with the source of the data's name if that is not the user.
/// \param within folder that must hold the data, as open_data takes it; empty: any
/// folder
tl::expected<std::shared_ptr<const data_set>, std::string>
opened_data(const options& o, const std::filesystem::path& within = {});

} // namespace troupe
