#include "experiments/support/interruption.hpp"

#include <csignal>

namespace troupe {

namespace {

std::atomic<bool> interrupted = false;
std::atomic<bool> no_reader = false;

void end_once(int number) {
  interrupted = true;
  std::signal(number, SIG_DFL);
}

void note_lost_reader(int) {
  no_reader = true;
  interrupted = true;
}

bool listen() {
  std::signal(SIGINT, end_once);
  std::signal(SIGTERM, end_once);
  if (std::signal(SIGHUP, end_once) == SIG_IGN)
    std::signal(SIGHUP, SIG_IGN);
  return true;
}

} // namespace

const std::atomic<bool>& interruption() {
  static const bool listening = listen();
  (void)listening;
  return interrupted;
}

void outlive_failed_writes() {
  std::signal(SIGPIPE, note_lost_reader);
  std::signal(SIGXFSZ, SIG_IGN);
}

bool reader_is_gone() {
  return no_reader;
}

} // namespace troupe
