// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/user_layer.hpp"

#include <pybind11/pybind11.h>

#include <memory>

namespace troupe::python {

/// A pass of a user's layer, as the methods of a Python layer receive it. Members are
/// arrays of the run's memory, made when they are read. All functions need Python's
/// lock.
class python_pass {
public:
  /// \param pass,layer outlive the pass, until end()
  /// \param for_a_sample values of a sample in `saved`, `kept` and `scratch`
  /// \param may_write read arrays are not marked as read-only
  python_pass(const user_pass& pass, const user_layer& layer,
              user_layer::buffer_sizes for_a_sample, bool may_write);

  /// Ends the pass: members are no longer read.
  void end() { pass_ = nullptr; }

  /// Declares the class Pass of the module.
  static void declare(pybind11::module_& m);

private:
  /// \throws std::runtime_error after end()
  const user_pass& pass() const;

  template <class Value>
  static pybind11::object array(const pybind11::object& self, const Value* values,
                                std::int64_t count, bool writable);
  static pybind11::object by_name(const pybind11::object& self, bool writable);

  const user_pass* pass_;
  const user_layer& layer_;
  user_layer::buffer_sizes for_a_sample_;
  bool may_write_;
  pybind11::object parameters_, gradients_; // made once
};

} // namespace troupe::python
