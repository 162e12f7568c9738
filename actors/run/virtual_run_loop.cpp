// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/virtual_run_loop.hpp"

#include "actors/run/stall.hpp"

namespace troupe {

void virtual_run_loop::wait() {
  for (;;) {
    stop_if_interrupted();
    run_handlers();
    while (run_.status.take_news()) {
      if (run_.status.failure())
        return;
      serve_snapshots();
      serve_checkpoint();
      run_.runtime.settle(); // ranks may wait for this, and no event be left
    }
    report_now_and_then();
    if (run_.status.finished())
      return;
    if (advance() || run_.runtime.settle() > 0)
      continue;
    send_external(run_.meter, run_.coordinator, mail::explain{});
    run_.runtime.settle();
    run_.status.post_failure(
      "the run has stalled: nothing runs and no event is pending; "
      + describe_stall(run_.status.explanations()));
    return;
  }
}

/// Makes the next event happen.
bool virtual_run_loop::advance() {
  return clock_.step();
}

/// Runs all handlers that can run, or as many as the caller wants before the next
/// event.
void virtual_run_loop::run_handlers() {
  if (const auto& handlers = run_.callbacks.disorder.handlers)
    run_.runtime.settle(handlers());
  else
    run_.runtime.settle();
}

} // namespace troupe
