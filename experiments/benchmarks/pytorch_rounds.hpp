// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/descriptor.hpp"

#include <sys/types.h>
#include <tl/expected.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A python that has PyTorch: the one that the environment's PYTHON names, else python3
/// of the path or of the system. On error says that there is none.
tl::expected<std::string, std::string> python_with_pytorch();

/// PyTorch's side of a row: rounds_in_pytorch.py in a process of its own, which trains
/// when it is asked to and waits in between. Ends with the process of its owner.
class pytorch_rounds {
public:
  /// Starts it, and waits until it is ready for rounds. \param options of the program
  /// On error says why it has no rounds.
  static tl::expected<std::unique_ptr<pytorch_rounds>, std::string>
  start(const std::string& python, const std::vector<std::string>& options);

  ~pytorch_rounds();
  pytorch_rounds(const pytorch_rounds&) = delete;
  pytorch_rounds& operator=(const pytorch_rounds&) = delete;

  /// What it has said of itself, a JSON object: "torch", "blas", "parameters".
  const std::string& about() const { return about_; }

  /// Trains a round of so many steps: the mean seconds of one. On error says why there
  /// are none.
  tl::expected<double, std::string> train(int steps);

private:
  pytorch_rounds(pid_t process, descriptor requests, descriptor answers)
    : process_(process), requests_(std::move(requests)), answers_(std::move(answers)) {
    // nop
  }

  tl::expected<std::string, std::string> line();
  tl::expected<std::string, std::string> answer();

  pid_t process_;
  descriptor requests_, answers_;
  std::string received_; // behind the last line
  std::string about_;
};

} // namespace troupe
