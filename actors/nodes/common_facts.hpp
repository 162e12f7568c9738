// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "messaging/mail/nodes.hpp"

#include <map>
#include <string>
#include <vector>

// Compares facts that must be equal in all processes of a run: data, GPU kind,
// arithmetic.

namespace troupe {

inline constexpr const char* name_of_data = "data";

/// The facts that decide the bits of a run: each has one value in all processes that
/// report the fact, and in all attempts of the run. For one thread.
class common_facts {
public:
  /// Adds the facts of a process. Returns a sentence if a value differs from the fact's
  /// first value, which another process or an earlier attempt reported. The sentence
  /// names the fact, both processes and both values; the facts that follow are then not
  /// added. Returns an empty string if no fact differs.
  /// \param process name of the process in error messages: "node a:4242"
  std::string add(const std::string& process,
                  const std::vector<mail::deciding_fact>& facts);

private:
  struct value_of_process {
    std::string process;
    std::string value;
  };
  std::map<std::string, value_of_process> known_; // by name
};

} // namespace troupe
