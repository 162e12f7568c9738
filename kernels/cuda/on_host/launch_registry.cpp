// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_host/launch_registry.hpp"

#include <atomic>

namespace troupe::on_host {

namespace {

std::atomic<memory_watch*> watch_now = nullptr;
std::atomic<std::int64_t> launches = 0;
std::atomic<std::int64_t> instants = 0;
thread_local launch_position on_stream; // stream that this thread runs, and instant
thread_local std::string launched_by;

} // namespace

void set_memory_watch(memory_watch* watch) {
  watch_now = watch;
}

memory_watch* current_memory_watch() {
  return watch_now;
}

std::int64_t next_instant() {
  return ++instants;
}

void run_on_stream(int stream, std::int64_t issued, const std::string& name,
                   const std::function<void()>& launch) {
  on_stream = {.stream = stream, .issued = issued};
  launched_by = name;
  launch();
}

std::int64_t last_launch() {
  return launches;
}

void report_end(int stream, std::int64_t launch) {
  if (auto* const watch = current_memory_watch())
    watch->report_end(stream, launch, ++instants);
}

progress progress_of(int stream) {
  auto* const watch = current_memory_watch();
  return watch != nullptr ? watch->progress_of(stream, last_launch()) : progress{};
}

void pass(int stream, const progress& order) {
  if (auto* const watch = current_memory_watch())
    watch->pass(stream, order);
}

launch_position begin_launch() {
  auto result = on_stream;
  result.launch = ++launches;
  if (auto* const watch = current_memory_watch();
      watch != nullptr && !launched_by.empty())
    watch->name_launch(result.launch, launched_by);
  return result;
}

void watch_library(const void* address, std::int64_t bytes, access_kind kind) {
  auto* const watch = current_memory_watch();
  if (watch == nullptr)
    return;
  const auto error = watch->check_access(address, bytes, kind, begin_launch(),
                                         reinterpret_cast<const void*>(&watch_library));
  if (!error.empty())
    throw kernel_error{"a library: " + error};
}

} // namespace troupe::on_host
