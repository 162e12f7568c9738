// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <boost/context/fiber.hpp>

#include <cstddef>
#include <functional>
#include <memory>

namespace troupe::on_host {

/// A separate flow of control with a stack, on the thread of the caller of resume().
/// The body runs again and again. resume() returns between two runs, and wherever the
/// body pauses.
class fibre {
public:
  explicit fibre(std::function<void()> body);
  fibre(const fibre&) = delete;
  fibre& operator=(const fibre&) = delete;

  /// \pre the body is between two runs, or has not run yet
  ~fibre();

  /// Continues the body, until the body pauses or ends.
  void resume();

  /// Suspends the body until the next resume().
  /// \pre called by the body
  void pause();

  /// True if an address is in the stack of this fibre.
  bool owns(const void* address) const;

private:
  boost::context::fiber run(boost::context::fiber&& resumer);

  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  boost::context::fiber inside_, outside_; // the suspended one of the two
  bool stopped_ = false;

  // State that the address sanitizer needs at each switch of stacks.
  void* fake_inside_ = nullptr;
  void* fake_outside_ = nullptr;
  const void* outer_stack_ = nullptr;
  std::size_t outer_size_ = 0;
};

} // namespace troupe::on_host
