// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/real_manager.hpp"

#include <algorithm>
#include <exception>

namespace troupe {

using namespace std::chrono_literals;

void real_manager::wait() {
  run_.house.start_threads(std::clamp(run_.plan.threads, 1, run_.plan.devices()));
  watch_.begin(
    run_.board, [this] { post(run_.meter, run_.coordinator, mail::explain{}); },
    [this] { help(); }, run_.others);
  while (!run_.board.finished() && !run_.board.failure()) {
    stop_if_interrupted();
    go_on();
    serve_snapshots();
    serve_checkpoint();
    report_now_and_then();
  }
}

/// Makes all schedulers grant nothing more, and waits until nothing runs.
bool real_manager::rest() {
  post(run_.meter, run_.coordinator, mail::hold{});
  while (!run_.board.failure()) {
    if (run_.board.take_held())
      return true;
    go_on();
  }
  return false;
}

/// Waits at most 20 ms for news.
bool real_manager::go_on() {
  const run_watch::waiting counted{watch_};
  run_.board.wait(20ms);
  if (watch_.broken())
    run_.board.post_failure("out of memory");
  return true;
}

/// Starts another thread, for answers: all others may be at work that never ends.
void real_manager::help() {
  try {
    run_.house.start_threads(1);
  } catch (const std::exception&) { // NOLINT(bugprone-empty-catch)
  }
}

} // namespace troupe
