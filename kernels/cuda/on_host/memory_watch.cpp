// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_host/memory_watch.hpp"

#include "kernels/cuda/on_host/source_line.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace troupe::on_host {

namespace {

constexpr int warp_size = 32;

bool same_block(const moment& a, const moment& b) {
  return a.launch == b.launch && a.block == b.block;
}

bool same_warp(const moment& a, const moment& b) {
  return same_block(a, b) && a.thread / warp_size == b.thread / warp_size;
}

} // namespace

void memory_watch::add(const void* array, watched_array what) {
  const auto values =
    static_cast<std::size_t>((what.bytes + what.value - 1) / what.value);
  const bool holds = what.holds_values;
  const std::lock_guard guard{lock_};
  auto& to = arrays_[static_cast<const std::byte*>(array)];
  to.what = std::move(what);
  to.cells.assign(values, {});
  for (auto& c : to.cells)
    c.has_value = holds;
}

void memory_watch::rename(const void* array, const std::string& to) {
  const std::lock_guard guard{lock_};
  if (const auto found = arrays_.find(static_cast<const std::byte*>(array));
      found != arrays_.end())
    found->second.what.name = to;
}

void memory_watch::name_launch(std::int64_t launch, const std::string& of) {
  const std::lock_guard guard{lock_};
  launches_[launch] = of;
}

std::string memory_watch::who(const moment& when) const {
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
  const auto* const at = static_cast<const std::byte*>(address);
  auto found = arrays_.upper_bound(at);
  if (found == arrays_.begin())
    return arrays_.end();
  --found;
  return at < found->first + found->second.what.bytes ? found : arrays_.end();
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
  for (const auto& [other, launch] : order)
    if (auto& last = passed_[stream][other]; other != stream)
      last = std::max(last, launch);
}

/// Whether two launches are ordered, of which the second runs now.
bool memory_watch::streams_are_ordered(const moment& before, const moment& when) const {
  if (before.stream == when.stream || before.stream == 0 || when.stream == 0)
    return true;
  if (const auto passed = passed_.find(when.stream); passed != passed_.end())
    if (const auto last = passed->second.find(before.stream);
        last != passed->second.end() && before.launch <= last->second)
      return true;
  const auto ends = ends_.find(before.stream);
  if (ends == ends_.end())
    return false;
  const auto known =
    std::ranges::lower_bound(ends->second, before.launch, {}, &known_end::launch);
  return known != ends->second.end() && known->since < when.issued;
}

bool memory_watch::is_ordered(const access& before, const moment& when) const {
  const auto& b = before.when;
  if (b.launch != when.launch)
    return streams_are_ordered(b, when);
  if (b.block != when.block)
    return false;
  return b.thread == when.thread || b.barriers < when.barriers
         || (same_warp(b, when) && b.warp_syncs < when.warp_syncs);
}

bool memory_watch::reads_are_ordered(const cell& at, const moment& when) const {
  if (!streams_are_ordered(at.read_of_other_stream.when, when))
    return false;
  const auto& r = at.read.when;
  if (r.launch != when.launch)
    return streams_are_ordered(r, when);
  if (at.read_by_blocks || r.block != when.block)
    return false;
  if (r.barriers < when.barriers)
    return true;
  if (at.read_by_warps || !same_warp(r, when))
    return false;
  return r.warp_syncs < when.warp_syncs
         || (!at.read_by_threads && r.thread == when.thread);
}

void memory_watch::note_read(cell& at, const moment& when, const void* from) {
  const auto& r = at.read.when;
  if (r.stream != when.stream)
    at.read_of_other_stream = at.read;
  if (r.launch != when.launch)
    at.read_by_blocks = at.read_by_warps = at.read_by_threads = false;
  else if (r.block != when.block)
    at.read_by_blocks = true;
  if (!same_block(r, when) || r.barriers < when.barriers)
    at.read_by_warps = at.read_by_threads = false;
  else if (!same_warp(r, when))
    at.read_by_warps = true;
  else if (r.warp_syncs < when.warp_syncs)
    at.read_by_threads = false;
  else if (r.thread != when.thread)
    at.read_by_threads = true;
  at.read = {when, from};
}

std::string memory_watch::judge(const void* address, std::int64_t bytes,
                                access_kind what, const moment& when,
                                const void* from) {
  const std::lock_guard guard{lock_};
  const bool reads = what == access_kind::read;
  const auto verb = [](bool is_read) { return is_read ? " reads " : " writes "; };
  const auto found = find(address);
  if (found == arrays_.end())
    return who(when) + verb(reads) + "outside of every array, at " + source_line(from);
  auto& [begin, found_array] = *found;
  const auto offset = static_cast<const std::byte*>(address) - begin;
  const auto& name = found_array.what.name;
  const auto place = " '" + name + "' at byte " + std::to_string(offset);
  if (offset + bytes > found_array.what.bytes)
    return who(when) + verb(reads) + "beyond the end of '" + name + "', at "
           + source_line(from);
  if (!reads && !found_array.what.may_write)
    return who(when) + " writes to '" + name + "', which is only read, at "
           + source_line(from);
  const auto race = [&](const access& with, bool with_read) {
    return "race on" + place + ": " + who(with.when) + verb(with_read) + "it at "
           + source_line(with.from) + ", " + who(when) + verb(reads) + "it at "
           + source_line(from)
           + (with.when.launch == when.launch ? ", and no barrier is between them"
                                              : ", and nothing orders the streams");
  };
  const auto first = static_cast<std::size_t>(offset / found_array.what.value);
  const auto last =
    static_cast<std::size_t>((offset + bytes - 1) / found_array.what.value);
  const bool atomic = what == access_kind::atomic;
  for (auto i = first; i <= last; ++i) {
    auto& at = found_array.cells[i];
    if ((reads || atomic) && !at.has_value)
      return who(when) + " reads" + place + ", which nobody has written, at "
             + source_line(from);
    if (!(atomic && at.write.atomic) && !is_ordered(at.write, when))
      return race(at.write, false);
    if (!reads && !reads_are_ordered(at, when))
      return race(streams_are_ordered(at.read_of_other_stream.when, when)
                    ? at.read
                    : at.read_of_other_stream,
                  true);
    if (reads) {
      note_read(at, when, from);
    } else {
      at.write = {when, from, atomic};
      at.has_value = what != access_kind::begun_write;
    }
  }
  return {};
}

} // namespace troupe::on_host
