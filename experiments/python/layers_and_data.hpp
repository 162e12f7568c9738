// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Layers and data that users write in Python, as layers and data of a run. Threads of
// devices take Python's lock for the time of a call.

#include "models/data/data_set.hpp"
#include "models/user_layer.hpp"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <string>

namespace troupe::python {

/// A layer whose passes are methods of a Python object: see troupe.Layer.
/// \throws pybind11::value_error if the object is no layer
std::shared_ptr<const user_layer> layer_of(const pybind11::object& object);

/// Samples in arrays, which the result keeps alive and does not copy.
/// \param inputs (samples, ..): int32 tokens or float32 values
/// \param labels (samples, ..): int32
/// \param held_out number of samples at the end that training does not see
/// \param seed of the order in each epoch
/// \throws pybind11::value_error if the arrays do not fit
std::shared_ptr<const data_set> data_of_arrays(const pybind11::array& inputs,
                                               const pybind11::array& labels,
                                               std::int64_t held_out,
                                               std::uint64_t seed);

/// Samples that a Python function returns: (inputs, labels) of an index. The indices of
/// held-out samples are below 0: -1 is the first.
/// \param shape of each sample
std::shared_ptr<const data_set> data_of_function(const pybind11::function& sample,
                                                 sample_shape shape,
                                                 std::int64_t held_out);

} // namespace troupe::python
