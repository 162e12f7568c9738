// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Sessions that Python starts. The caller of each function has Python's lock.

#include "experiments/options/own_parts.hpp"
#include "experiments/options/setup.hpp"
#include "experiments/session/session.hpp"
#include "models/check_layer.hpp"

#include <pybind11/pybind11.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace troupe::python {

/// A session and all that its accounts refer to.
struct kept_session {
  setup shared;
  ended_session ended;
  std::vector<std::string> errors, notes;
};

/// Throws pybind11::value_error.
/// \param sentence may have bytes that are no UTF-8
[[noreturn]] void throw_value_error(const std::string& sentence);

/// The program of a name. \throws pybind11::value_error if there is none
program_info program_named(const std::string& name);

/// Performs a program in a thread. Python's handlers of signals run meanwhile.
/// \param words options as of a command line
/// \param schedules texts of schedules by name
/// \param advance called with samples and loss of each minibatch, or None
/// \throws pybind11::value_error with one sentence about options that cannot be
/// fulfilled
/// \throws std::runtime_error if another session is under way
/// \throws pybind11::error_already_set of `advance` or of a signal's handler
std::shared_ptr<kept_session> perform(const std::string& name,
                                      const std::vector<std::string>& words,
                                      std::map<std::string, std::string> schedules,
                                      own_parts own, const pybind11::object& advance);

/// Checks a Python layer. Returns one sentence about a difference, else an empty text.
/// \throws std::runtime_error if a session is under way
std::string difference_in(const pybind11::object& layer, const layer_check& how);

} // namespace troupe::python
