// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <utility>
#include <vector>

namespace troupe::python {

/// A NumPy array of values without a copy; None if `values` is null. Needs Python's
/// lock.
/// \param owner kept alive by the array; owns the values
template <class Value>
pybind11::object view(const Value* values, std::vector<pybind11::ssize_t> dims,
                      bool writable, const pybind11::object& owner) {
  if (values == nullptr)
    return pybind11::none();
  pybind11::array_t<Value> result(std::move(dims), values, owner);
  if (!writable)
    pybind11::detail::array_proxy(result.ptr())->flags &=
      ~pybind11::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return result;
}

} // namespace troupe::python
