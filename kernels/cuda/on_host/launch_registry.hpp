// SPDX-License-Identifier: BSD-3-Clause
// Numbers and names of launches and streams on this machine, for the memory watch that
// checks accesses.
#pragma once

#include "kernels/cuda/on_host/memory_watch.hpp"

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace troupe::on_host {

/// An error of a kernel or launch, for example a race, an access outside of arrays, or
/// a barrier without some threads. More shared memory than a GPU has is an error too.
class kernel_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Sets the watch that checks accesses, if kernels are compiled so that accesses can be
/// seen (accesses.cpp).
/// \param watch null if accesses are not checked; must outlive all launches and
/// allocations until the next call
/// \pre all streams are idle
void set_memory_watch(memory_watch* watch);
/// The watch of set_memory_watch(); null if accesses are not checked.
memory_watch* current_memory_watch();

/// Returns a new instant. Instants number the events that this machine observes, from 1
/// on.
std::int64_t next_instant();

/// Runs a launch that was enqueued on a stream, on this thread. Exceptions of the
/// launch reach the caller.
/// \param stream number of the stream, from 1 on
/// \param issued the instant of enqueueing
/// \param name for error messages; may be empty
void run_on_stream(int stream, std::int64_t issued, const std::string& name,
                   const std::function<void()>& launch);

/// Number of the last launch that has begun, on any stream; 0 before the first.
std::int64_t last_launch();

/// Records that, from now on, a thread of this machine knows the end of the launches on
/// `stream` up to number `launch`. No effect without a watch.
void report_end(int stream, std::int64_t launch);

/// The launches that come before the current position of a stream; empty without a
/// watch.
progress progress_of(int stream);

/// Records that later launches of a stream come after the launches of `order`. No
/// effect without a watch.
void pass(int stream, const progress& order);

/// Begins a launch on this thread. Returns the position of all accesses of the launch,
/// without block and thread.
launch_position begin_launch();

/// Checks the accesses of a library, as a separate launch. No effect without a watch.
/// \throws kernel_error
void watch_library(const void* address, std::int64_t bytes, access_kind kind);

} // namespace troupe::on_host
