#pragma once

#include "experiments/options/setup.hpp"
#include "experiments/session/interruption.hpp"
#include "experiments/session/program.hpp"

#include <tl/expected.hpp>

#include <string>

namespace troupe {

/// Does what the options of a program say, once they were looked at: the runs one after
/// another, with progress while they run, and what they leave behind. Returns the exit
/// code: 0, 1 if a run failed, 2 if the options are wrong, 130 if the user ended it.
int run_session(const options& o, const tl::expected<setup, std::string>& shared);

/// The same from the options alone; says so when the set-up takes long.
int run_session(const options& o,
                tl::expected<setup, std::string> (*set_up)(const options&));

} // namespace troupe
