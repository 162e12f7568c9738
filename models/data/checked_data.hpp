// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/data_set.hpp"
#include "models/network.hpp"

#include <memory>
#include <string>

namespace troupe {

/// The reason why samples do not fit a network, as one sentence; empty if the samples
/// fit, or the data set does not describe samples.
std::string sample_shape_error(const data_set& data, const network<float>& whole);

/// Returns a data set with the samples of `data`, checked on every read. A label
/// outside the network's classes, or a token outside the network's words, throws
/// std::out_of_range with the sample's index. The number of words of a user's network
/// is unknown, so tokens of such a network are not checked. The identity of `data` is
/// asked for once, in this call.
std::shared_ptr<const data_set> checked(std::shared_ptr<const data_set> data,
                                        const network<float>& whole);

} // namespace troupe
