// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/pool.hpp"

#include "kernels/gpu_completion.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

namespace troupe {

struct buffer::block {
  std::int64_t first; // index of the first value in the pool's memory
  pool* owner;
  std::atomic<int> handles;
  std::shared_ptr<gpu_completion> reader = {};
};

buffer::buffer(const buffer& source) : block_(source.block_) {
  if (block_ != nullptr)
    block_->handles.fetch_add(1, std::memory_order_relaxed);
}

buffer& buffer::operator=(buffer source) noexcept {
  std::swap(block_, source.block_);
  return *this;
}

buffer::~buffer() {
  if (block_ != nullptr && block_->handles.fetch_sub(1, std::memory_order_acq_rel) == 1)
    block_->owner->give_back(block_);
}

float* buffer::data() const {
  auto* const values = block_ != nullptr ? block_->owner->memory_.data() : nullptr;
  return values != nullptr ? values + block_->first : nullptr;
}

std::int32_t* buffer::integers() const {
  auto* const values = block_ != nullptr ? block_->owner->memory_.integers() : nullptr;
  return values != nullptr ? values + block_->first : nullptr;
}

const memory_space* buffer::space() const {
  return block_ != nullptr ? block_->owner->memory_.space() : nullptr;
}

void buffer::set_reader(std::shared_ptr<gpu_completion> reader) const {
  block_->reader = std::move(reader);
}

std::shared_ptr<gpu_completion> buffer::take_reader() const {
  return block_ != nullptr ? std::exchange(block_->reader, {}) : nullptr;
}

pool::pool(std::string name, int count, std::int64_t values, memory_account& account,
           element kind)
  : name_(std::move(name)),
    bytes_each_(values * bytes_of(kind)),
    account_(account),
    memory_(padded(values) * count, account, kind) {
  if (memory_.space() != nullptr)
    account.space().name(memory_.address(), name_);
  for (int i = 0; i < count; ++i) {
    blocks_.push_back(std::make_unique<buffer::block>());
    blocks_.back()->first = padded(values) * i;
    blocks_.back()->owner = this;
  }
  // The free buffer with the lowest address goes first, and a returned one goes next,
  // while the values may still be cached.
  for (auto b = blocks_.rbegin(); b != blocks_.rend(); ++b)
    free_.push_back(b->get());
}

// Waits up to about a second for all buffers: a thread that has just passed a buffer on
// may still hold a handle.
pool::~pool() {
  const auto all_back = [this] {
    const std::lock_guard guard{lock_};
    return free_.size() == blocks_.size();
  };
  for (int looks = 0; looks < 1000 && !all_back(); ++looks)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
}

buffer pool::acquire() {
  if (auto free = acquire_if_free())
    return free;
  throw std::logic_error("no room is left for " + name_ + ": all "
                         + std::to_string(size())
                         + " buffers are in use, which a schedule's bound rules out, "
                           "unless a relay keeps handles of payloads");
}

buffer pool::acquire_if_free() {
  const std::lock_guard guard{lock_};
  if (free_.empty())
    return {};
  auto* b = free_.back();
  free_.pop_back();
  b->handles = 1;
  account_.use(bytes_each_);
  return buffer{b};
}

void pool::give_back(buffer::block* b) {
  const std::lock_guard guard{lock_};
  account_.release(bytes_each_);
  // A buffer that a GPU may still read goes behind all other free buffers.
  free_.insert(b->reader ? free_.begin() : free_.end(), b);
}

} // namespace troupe
