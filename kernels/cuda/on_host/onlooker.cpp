// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_host/onlooker.hpp"

#include <atomic>

namespace troupe::on_host {

namespace {

std::atomic<memory_watch*> watch_now = nullptr;
std::atomic<std::int64_t> launches = 0;
std::atomic<std::int64_t> instants = 0;
thread_local moment on_stream; // stream that this thread runs, and instant
thread_local std::string launched_by;

} // namespace

void look_on(memory_watch* watch) {
  watch_now = watch;
}

memory_watch* who_looks_on() {
  return watch_now;
}

std::int64_t next_instant() {
  return ++instants;
}

void run_on_stream(int stream, std::int64_t issued, const std::string& by,
                   const std::function<void()>& launch) {
  on_stream = {.stream = stream, .issued = issued};
  launched_by = by;
  launch();
}

std::int64_t last_launch() {
  return launches;
}

void report_end(int stream, std::int64_t launch) {
  if (auto* const watch = who_looks_on())
    watch->report_end(stream, launch, ++instants);
}

progress progress_of(int stream) {
  auto* const watch = who_looks_on();
  return watch != nullptr ? watch->progress_of(stream, last_launch()) : progress{};
}

void pass(int stream, const progress& order) {
  if (auto* const watch = who_looks_on())
    watch->pass(stream, order);
}

moment begin_launch() {
  auto result = on_stream;
  result.launch = ++launches;
  if (auto* const watch = who_looks_on(); watch != nullptr && !launched_by.empty())
    watch->name_launch(result.launch, launched_by);
  return result;
}

void watch_library(const void* address, std::int64_t bytes, access_kind what) {
  auto* const watch = who_looks_on();
  if (watch == nullptr)
    return;
  const auto wrong = watch->judge(address, bytes, what, begin_launch(),
                                  reinterpret_cast<const void*>(&watch_library));
  if (!wrong.empty())
    throw kernel_error{"a library: " + wrong};
}

} // namespace troupe::on_host
