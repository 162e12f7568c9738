// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_host/shared_memory.hpp"

#include <algorithm>

namespace troupe::on_host {

namespace {

constexpr unsigned char poison = 0xcd;
constexpr std::int64_t alignment = 128;

} // namespace

void shared_memory::begin(memory_watch* watch) {
  forget();
  watch_ = watch;
}

void shared_memory::forget() {
  if (watch_ != nullptr)
    for (const auto& [where, range] : arrays_)
      watch_->remove(memory_.data() + range.offset);
  watch_ = nullptr;
  arrays_.clear();
  used_ = 0;
}

void* shared_memory::array(const char* name, const void* where, std::int64_t bytes,
                           std::int64_t value) {
  auto entry = arrays_.find(where);
  if (entry == arrays_.end()) {
    const auto gap = alignment; // behind the array
    if (used_ + bytes > most)
      return nullptr;
    entry = arrays_.emplace(where, array_range{used_, bytes}).first;
    used_ += (bytes + alignment - 1) / alignment * alignment + gap;
    std::fill_n(memory_.begin() + entry->second.offset, bytes, poison);
    if (watch_ != nullptr)
      watch_->add(memory_.data() + entry->second.offset,
                  {name, bytes, value, true, false});
  }
  return memory_.data() + entry->second.offset;
}

std::int64_t shared_memory::bytes_without(const void* where) const {
  std::int64_t sum = 0;
  for (const auto& [key, range] : arrays_)
    sum += key == where ? 0 : range.bytes;
  return sum;
}

} // namespace troupe::on_host
