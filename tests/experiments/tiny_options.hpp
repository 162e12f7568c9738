#pragma once

#include "experiments/options/options.hpp"

#include <string>

namespace tiny {

using namespace troupe;

/// A GPT that trains within a millisecond.
inline options training(const std::string& schedules) {
  options o;
  o.layers = 4;
  o.width = 8;
  o.heads = 2;
  o.length = 4;
  o.words = 7;
  o.schedules = {schedules};
  return o;
}

} // namespace tiny
