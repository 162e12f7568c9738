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

/// The name or path of a Python that has PyTorch. If the environment variable PYTHON
/// names a Python, no other is tried. Else python3 of the search path and
/// /usr/bin/python3 are tried. The error is one sentence: no Python with PyTorch was
/// found.
tl::expected<std::string, std::string> python_with_pytorch();

/// PyTorch's side of a row: rounds_in_pytorch.py in a child process. The child trains
/// one round for each request and waits in between. The child ends when its input
/// closes: with this object, or with the owner's process.
class pytorch_rounds {
public:
  /// Starts the child, and waits until the child is ready for rounds, but at most 300
  /// seconds for each line of its output. The error is one sentence: why there are no
  /// rounds, also if the user ends the program.
  /// \param options command-line options of rounds_in_pytorch.py
  static tl::expected<std::unique_ptr<pytorch_rounds>, std::string>
  start(const std::string& python, const std::vector<std::string>& options);

  /// Ends the child within seconds, if necessary by signals.
  ~pytorch_rounds();
  pytorch_rounds(const pytorch_rounds&) = delete;
  pytorch_rounds& operator=(const pytorch_rounds&) = delete;

  /// A JSON object that the child sent about itself, with keys such as "torch", "blas"
  /// and "parameters". Valid as long as this object lives.
  const std::string& info() const { return info_; }

  /// Trains a round of `steps` steps. Returns the mean seconds of one step. Waits at
  /// most 300 seconds for each line. The error is one sentence: why the round has no
  /// time.
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
  std::string received_; // bytes after the last complete line
  std::string info_;
};

} // namespace troupe
