// SPDX-License-Identifier: BSD-3-Clause
// What this machine knows of launches while somebody looks on at their accesses.
#pragma once

#include "kernels/cuda/on_host/memory_watch.hpp"

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace troupe::on_host {

/// What a kernel must not do: races, accesses outside of arrays, barriers that not all
/// threads come to, more shared memory than a GPU has.
class kernel_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Who looks on at accesses, if the kernel is compiled so that its accesses can be seen
/// (accesses.cpp). Null: nobody. Streams are idle when that changes.
void look_on(memory_watch* watch);
memory_watch* who_looks_on();

/// Instants in the order in which this machine knows of them.
std::int64_t next_instant();

/// Runs what somebody launched on a stream at an instant. \param stream from 1 on
void run_on_stream(int stream, std::int64_t issued, const std::string& by,
                   const std::function<void()>& launch);

/// Of the last launch that has begun, on any stream.
std::int64_t last_launch();

/// Somebody here knows that launches up to one, as far as they are of a stream, are
/// over.
void report_end(int stream, std::int64_t launch);

/// What a stream is behind, where it has come to; empty if nobody looks on.
progress progress_of(int stream);

/// A stream is behind that, too, from where it has come to.
void pass(int stream, const progress& order);

/// A launch begins on this thread. Returns when its accesses are, but for who of it
/// makes them.
moment begin_launch();

/// What a library does with memory, as a launch of its own. \throws kernel_error
void watch_library(const void* address, std::int64_t bytes, access_kind what);

} // namespace troupe::on_host
