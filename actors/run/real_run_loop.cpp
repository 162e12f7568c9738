// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/real_run_loop.hpp"

#include "plan/replica_rules.hpp"

#include <algorithm>
#include <exception>

namespace troupe {

using namespace std::chrono_literals;

void real_run_loop::wait() {
  run_.runtime.start_threads(std::clamp(run_.plan.machine.threads, 1,
                                        device_count(run_.plan, all_ranks(run_.plan))));
  watch_.begin(
    run_.status,
    [this] { send_external(run_.meter, run_.coordinator, mail::explain{}); },
    [this] { help(); }, run_.remote_part);
  while (!run_.status.finished() && !run_.status.failure()) {
    stop_if_interrupted();
    advance();
    serve_snapshots();
    serve_checkpoint();
    report_now_and_then();
  }
}

/// Makes all schedulers grant nothing more, and waits until nothing runs.
bool real_run_loop::rest() {
  send_external(run_.meter, run_.coordinator, mail::hold{});
  while (!run_.status.failure()) {
    if (run_.status.take_held())
      return true;
    advance();
  }
  return false;
}

/// Waits at most 20 ms for news.
bool real_run_loop::advance() {
  const run_monitor::waiting counted{watch_};
  run_.status.wait(20ms);
  if (watch_.broken())
    run_.status.post_failure("out of memory");
  return true;
}

/// Starts another thread, for answers: all others may be at work that never ends.
void real_run_loop::help() {
  try {
    run_.runtime.start_threads(1);
  } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
  }
}

} // namespace troupe
