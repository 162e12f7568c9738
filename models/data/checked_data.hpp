// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/data_set.hpp"
#include "models/network.hpp"

#include <memory>
#include <string>

namespace troupe {

/// Why samples are not what a network takes; empty if they are, or do not say.
std::string refusal_of_samples(const data_set& data, const network<float>& whole);

/// The same samples. Labels that the network has no class for, or tokens that are none
/// of its words, are thrown as std::out_of_range with the sample's number.
std::shared_ptr<const data_set> checked(std::shared_ptr<const data_set> data,
                                        const network<float>& whole);

} // namespace troupe
