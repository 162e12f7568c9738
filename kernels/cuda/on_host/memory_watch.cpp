// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_host/memory_watch.hpp"

#include "kernels/cuda/on_host/source_line.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace troupe::on_host {

namespace {

constexpr int warp_size = 32;

bool same_block(const launch_position& a, const launch_position& b) {
  return a.launch == b.launch && a.block == b.block;
}

bool same_warp(const launch_position& a, const launch_position& b) {
  return same_block(a, b) && a.thread / warp_size == b.thread / warp_size;
}

} // namespace

void memory_watch::add(const void* array, watched_array description) {
  const auto values = static_cast<std::size_t>(
    (description.bytes + description.value - 1) / description.value);
  const bool holds = description.holds_values;
  const std::lock_guard guard{lock_};
  auto& to = arrays_[static_cast<const std::byte*>(array)];
  to.description = std::move(description);
  to.cells.assign(values, {});
  for (auto& c : to.cells)
    c.has_value = holds;
}

void memory_watch::rename(const void* array, const std::string& to) {
  const std::lock_guard guard{lock_};
  if (const auto entry = arrays_.find(static_cast<const std::byte*>(array));
      entry != arrays_.end())
    entry->second.description.name = to;
}

void memory_watch::name_launch(std::int64_t launch, const std::string& name) {
  const std::lock_guard guard{lock_};
  launches_[launch] = name;
}

std::string memory_watch::describe(const launch_position& when) const {
  const auto named = launches_.find(when.launch);
  return "thread " + std::to_string(when.thread) + " of block "
         + std::to_string(when.block)
         + (named == launches_.end() ? "" : " of " + named->second)
         + (when.stream == 0 ? "" : " on stream " + std::to_string(when.stream));
}

void memory_watch::remove(const void* array) {
  const std::lock_guard guard{lock_};
  arrays_.erase(static_cast<const std::byte*>(array));
}

memory_watch::arrays::iterator memory_watch::find(const void* address) {
  const auto* const position = static_cast<const std::byte*>(address);
  auto entry = arrays_.upper_bound(position);
  if (entry == arrays_.begin())
    return arrays_.end();
  --entry;
  return position < entry->first + entry->second.description.bytes ? entry
                                                                   : arrays_.end();
}

void memory_watch::report_end(int stream, std::int64_t launch, std::int64_t instant) {
  const std::lock_guard guard{lock_};
  ends_[stream].push_back({launch, instant});
}

progress memory_watch::progress_of(int stream, std::int64_t launch) {
  const std::lock_guard guard{lock_};
  auto result = passed_[stream];
  result[stream] = launch;
  return result;
}

void memory_watch::pass(int stream, const progress& order) {
  const std::lock_guard guard{lock_};
  for (const auto& [other_stream, launch] : order)
    if (auto& last = passed_[stream][other_stream]; other_stream != stream)
      last = std::max(last, launch);
}

/// Whether two launches are ordered, of which the second runs now.
bool memory_watch::streams_are_ordered(const launch_position& earlier,
                                       const launch_position& when) const {
  if (earlier.stream == when.stream || earlier.stream == 0 || when.stream == 0)
    return true;
  if (const auto passed = passed_.find(when.stream); passed != passed_.end())
    if (const auto last = passed->second.find(earlier.stream);
        last != passed->second.end() && earlier.launch <= last->second)
      return true;
  const auto ends = ends_.find(earlier.stream);
  if (ends == ends_.end())
    return false;
  const auto known =
    std::ranges::lower_bound(ends->second, earlier.launch, {}, &known_end::launch);
  return known != ends->second.end() && known->since < when.issued;
}

bool memory_watch::is_ordered(const access& earlier,
                              const launch_position& when) const {
  const auto& b = earlier.when;
  if (b.launch != when.launch)
    return streams_are_ordered(b, when);
  if (b.block != when.block)
    return false;
  return b.thread == when.thread || b.barriers < when.barriers
         || (same_warp(b, when) && b.warp_syncs < when.warp_syncs);
}

bool memory_watch::reads_are_ordered(const cell& history,
                                     const launch_position& when) const {
  if (!streams_are_ordered(history.read_of_other_stream.when, when))
    return false;
  const auto& r = history.read.when;
  if (r.launch != when.launch)
    return streams_are_ordered(r, when);
  if (history.read_by_blocks || r.block != when.block)
    return false;
  if (r.barriers < when.barriers)
    return true;
  if (history.read_by_warps || !same_warp(r, when))
    return false;
  return r.warp_syncs < when.warp_syncs
         || (!history.read_by_threads && r.thread == when.thread);
}

void memory_watch::note_read(cell& history, const launch_position& when,
                             const void* from) {
  const auto& r = history.read.when;
  if (r.stream != when.stream)
    history.read_of_other_stream = history.read;
  if (r.launch != when.launch)
    history.read_by_blocks = history.read_by_warps = history.read_by_threads = false;
  else if (r.block != when.block)
    history.read_by_blocks = true;
  if (!same_block(r, when) || r.barriers < when.barriers)
    history.read_by_warps = history.read_by_threads = false;
  else if (!same_warp(r, when))
    history.read_by_warps = true;
  else if (r.warp_syncs < when.warp_syncs)
    history.read_by_threads = false;
  else if (r.thread != when.thread)
    history.read_by_threads = true;
  history.read = {when, from};
}

std::string memory_watch::check_access(const void* address, std::int64_t bytes,
                                       access_kind kind, const launch_position& when,
                                       const void* from) {
  const std::lock_guard guard{lock_};
  const bool reads = kind == access_kind::read;
  const auto verb = [](bool is_read) { return is_read ? " reads " : " writes "; };
  const auto entry = find(address);
  if (entry == arrays_.end())
    return describe(when) + verb(reads) + "outside of every array, at "
           + source_line(from);
  auto& [begin, found_array] = *entry;
  const auto offset = static_cast<const std::byte*>(address) - begin;
  const auto& name = found_array.description.name;
  // Texts are made only for errors: this function is called for every access.
  const auto location = [&] {
    return " '" + name + "' at byte " + std::to_string(offset);
  };
  if (offset + bytes > found_array.description.bytes)
    return describe(when) + verb(reads) + "beyond the end of '" + name + "', at "
           + source_line(from);
  if (!reads && !found_array.description.may_write)
    return describe(when) + " writes to '" + name + "', which is only read, at "
           + source_line(from);
  const auto race = [&](const access& conflict, bool with_read) {
    return "race on" + location() + ": " + describe(conflict.when) + verb(with_read)
           + "it at " + source_line(conflict.from) + ", " + describe(when) + verb(reads)
           + "it at " + source_line(from)
           + (conflict.when.launch == when.launch ? ", and no barrier is between them"
                                                  : ", and nothing orders the streams");
  };
  const auto first = static_cast<std::size_t>(offset / found_array.description.value);
  const auto last =
    static_cast<std::size_t>((offset + bytes - 1) / found_array.description.value);
  const bool atomic = kind == access_kind::atomic;
  for (auto i = first; i <= last; ++i) {
    auto& history = found_array.cells[i];
    if ((reads || atomic) && !history.has_value)
      return describe(when) + " reads" + location() + ", which nobody has written, at "
             + source_line(from);
    if (!(atomic && history.write.atomic) && !is_ordered(history.write, when))
      return race(history.write, false);
    if (!reads && !reads_are_ordered(history, when))
      return race(streams_are_ordered(history.read_of_other_stream.when, when)
                    ? history.read
                    : history.read_of_other_stream,
                  true);
    if (reads) {
      note_read(history, when, from);
    } else {
      history.write = {when, from, atomic};
      history.has_value = kind != access_kind::begun_write;
    }
  }
  return {};
}

} // namespace troupe::on_host
