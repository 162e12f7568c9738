// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/interruption.hpp"

#include <csignal>
#include <cstdint>
#include <ctime>

namespace troupe {

namespace {

std::atomic<bool> interrupted = false;
std::atomic<bool> leaves_signals = false;
std::atomic<bool> no_reader = false;
std::atomic<bool> announced = false;

/// SIGUSR1: Slurm's --signal, Grid Engine's -notify. SIGUSR2: Grid Engine, LSF.
/// SIGXCPU: a limit of processor time.
constexpr int announcements[] = {SIGUSR1, SIGUSR2, SIGXCPU};

std::atomic<std::int64_t> first_signal = 0; // nanoseconds of the steady clock

// Some senders signal a program and then the program's group, and a closing terminal
// sends a SIGHUP in addition to the shell's. Signals within one second therefore count
// as one request.
void end_once(int number) {
  constexpr std::int64_t one_wish = 1'000'000'000;
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const auto now = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  std::int64_t first = 0;
  const bool again = !first_signal.compare_exchange_strong(first, now);
  interrupted = true;
  if (!again || now - first < one_wish)
    return;
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// Announcements may be repeated: the kernel sends SIGXCPU each second. So no
// announcement kills.
void end_announced(int) {
  interrupted = true;
}

void note_lost_reader(int) {
  no_reader = true;
  interrupted = true;
}

void note_announcement(int) {
  announced = true;
}

/// Handles a signal, unless the signal is ignored.
void handle(int number, void (*handler)(int)) {
  if (std::signal(number, handler) == SIG_IGN)
    std::signal(number, SIG_IGN);
}

bool listen() {
  if (leaves_signals)
    return false;
  std::signal(SIGINT, end_once);
  std::signal(SIGTERM, end_once);
  handle(SIGHUP, end_once);
  for (const int number : announcements)
    handle(number, end_announced);
  return true;
}

bool listen_to_announcements() {
  (void)interruption(); // the new handlers replace the ones installed there
  if (leaves_signals)
    return false;
  for (const int number : announcements)
    handle(number, note_announcement);
  return true;
}

} // namespace

const std::atomic<bool>& interruption() {
  static const bool listening = listen();
  (void)listening;
  return interrupted;
}

void leave_signals() {
  leaves_signals = true;
}

void interrupt(bool is_set) {
  interrupted = is_set;
}

const std::atomic<bool>& announced_end() {
  static const bool listening = listen_to_announcements();
  (void)listening;
  return announced;
}

void outlive_failed_writes() {
  std::signal(SIGPIPE, note_lost_reader);
  std::signal(SIGXFSZ, SIG_IGN);
}

bool reader_is_gone() {
  return no_reader;
}

} // namespace troupe
