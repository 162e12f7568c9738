// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "experiments/options/options.hpp"
#include "models/data/data_set.hpp"

#include <tl/expected.hpp>

#include <filesystem>
#include <memory>
#include <string>

namespace troupe {

/// Opens the data that options name. If the data and `o.data.origin` both have an
/// identity, the two must be equal; data without files are not compared. Programs that
/// only evaluate open the data of --evaluate-data alone, if a user names data there.
/// The error is one sentence. The sentence names the file of `o.data.origin` if data
/// from that origin cannot be opened, or have another identity.
/// \param within folder that must hold the data (open_data.hpp); empty: any folder
tl::expected<std::shared_ptr<const data_set>, std::string>
opened_data(const options& o, const std::filesystem::path& within = {});

} // namespace troupe
