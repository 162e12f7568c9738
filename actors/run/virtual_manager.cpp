// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/virtual_manager.hpp"

#include "actors/run/stall.hpp"

namespace troupe {

void virtual_manager::wait() {
  for (;;) {
    stop_if_interrupted();
    hear();
    while (run_.board.take_news()) {
      if (run_.board.failure())
        return;
      serve_snapshots();
      serve_checkpoint();
      run_.house.settle(); // ranks may wait for this, and no event be left
    }
    report_now_and_then();
    if (run_.board.finished())
      return;
    if (go_on() || run_.house.settle() > 0)
      continue;
    post(run_.meter, run_.coordinator, mail::explain{});
    run_.house.settle();
    run_.board.post_failure(
      "the run has stalled: nothing runs and no event is pending; "
      + describe_stall(run_.board.explanations()));
    return;
  }
}

/// Makes the next event happen.
bool virtual_manager::go_on() {
  return clock_.step();
}

/// Runs all handlers that can run, or as many as the caller wants before the next
/// event.
void virtual_manager::hear() {
  if (const auto& handlers = run_.callbacks.disorder.handlers)
    run_.house.settle(handlers());
  else
    run_.house.settle();
}

} // namespace troupe
