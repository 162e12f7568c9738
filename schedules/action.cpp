// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/action.hpp"

#include <stdexcept>

namespace troupe {

char letter_of(op operation) {
  switch (operation) {
  case op::forward:
    return 'F';
  case op::backward:
    return 'B';
  case op::input_gradient:
    return 'I';
  case op::weight_gradient:
    return 'W';
  case op::update:
    return 'U';
  case op::recompute:
    return 'R';
  }
  throw std::logic_error{"an action is of an unknown op"};
}

std::string to_string(const action& a, bool with_stage) {
  auto result = letter_of(a.op) + std::to_string(a.microbatch);
  if (with_stage)
    result += " of stage " + std::to_string(a.stage);
  if (with_stage && a.direction > 0)
    result += " (replica " + std::to_string(a.direction) + ")";
  return result;
}

} // namespace troupe
