#pragma once

#include "kernels/team.hpp"

namespace troupe {

/// Where the kernels of a rank run, one after another in the order of their calls. On
/// the CPU a kernel runs on its caller's thread with the help of a team, and has ended
/// when the call returns. For one thread at a time; ranks do not share one.
class stream {
public:
  /// \param threads of the CPU, the caller's among them \throws no_thread
  explicit stream(int threads = 1) : cpu_(threads) {
    // nop
  }

  /// Threads of the CPU: the scratch of some kernels grows with them.
  int threads() const { return cpu_.size(); }

  /// The threads that a kernel's CPU implementation shares its work out to.
  team& cpu() { return cpu_; }

private:
  team cpu_;
};

} // namespace troupe
