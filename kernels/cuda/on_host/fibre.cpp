// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/cuda/on_host/fibre.hpp"

#include <utility>

#ifdef TROUPE_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace troupe::on_host {

namespace {

constexpr std::size_t stack_bytes = 256 * 1024;

/// An allocator that frees nothing, because the fibre owns the stack.
struct borrowed_stack {
  void deallocate(boost::context::stack_context&) {}
};

void begin_switch([[maybe_unused]] void** fake, [[maybe_unused]] const void* to,
                  [[maybe_unused]] std::size_t bytes) {
#ifdef TROUPE_ASAN
  __sanitizer_start_switch_fiber(fake, to, bytes);
#endif
}

void end_switch([[maybe_unused]] void* fake, [[maybe_unused]] const void** from,
                [[maybe_unused]] std::size_t* bytes) {
#ifdef TROUPE_ASAN
  __sanitizer_finish_switch_fiber(fake, from, bytes);
#endif
}

} // namespace

fibre::fibre(std::function<void()> body)
  : body_(std::move(body)),
    stack_(std::make_unique_for_overwrite<std::byte[]>(stack_bytes)) {
  boost::context::stack_context context;
  context.size = stack_bytes;
  context.sp = stack_.get() + stack_bytes;
  inside_ = boost::context::fiber{
    std::allocator_arg, boost::context::preallocated{context.sp, context.size, context},
    borrowed_stack{},
    [this](boost::context::fiber&& resumer) { return run(std::move(resumer)); }};
}

fibre::~fibre() {
  stopped_ = true;
  resume();
}

boost::context::fiber fibre::run(boost::context::fiber&& resumer) {
  end_switch(nullptr, &outer_stack_, &outer_size_);
  outside_ = std::move(resumer);
  while (!stopped_) {
    body_();
    pause();
  }
  begin_switch(nullptr, outer_stack_, outer_size_);
  return std::move(outside_);
}

void fibre::resume() {
  begin_switch(&fake_outside_, stack_.get(), stack_bytes);
  inside_ = std::move(inside_).resume();
  end_switch(fake_outside_, nullptr, nullptr);
}

void fibre::pause() {
  begin_switch(&fake_inside_, outer_stack_, outer_size_);
  outside_ = std::move(outside_).resume();
  end_switch(fake_inside_, &outer_stack_, &outer_size_);
}

bool fibre::owns(const void* address) const {
  const auto* position = static_cast<const std::byte*>(address);
  return position >= stack_.get() && position < stack_.get() + stack_bytes;
}

} // namespace troupe::on_host
