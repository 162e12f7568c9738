// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <boost/context/fiber.hpp>

#include <cstddef>
#include <functional>
#include <memory>

namespace troupe::on_host {

/// A flow of control of its own, on the thread of whoever resumes it. Runs its body
/// again and again; between two runs, and wherever the body pauses, resume() returns.
class fibre {
public:
  explicit fibre(std::function<void()> body);
  fibre(const fibre&) = delete;
  fibre& operator=(const fibre&) = delete;

  /// \pre the body is at its beginning
  ~fibre();

  /// Goes on with the body, until it pauses or ends.
  void resume();

  /// Goes on behind resume(). \pre called by the body
  void pause();

  /// Whether an address is in this fibre's stack.
  bool owns(const void* address) const;

private:
  boost::context::fiber run(boost::context::fiber&& resumer);

  std::function<void()> body_;
  std::unique_ptr<std::byte[]> stack_;
  boost::context::fiber inside_, outside_; // what is suspended of the two
  bool stopped_ = false;

  // What the address sanitizer wants to know of stacks.
  void* fake_inside_ = nullptr;
  void* fake_outside_ = nullptr;
  const void* outer_stack_ = nullptr;
  std::size_t outer_size_ = 0;
};

} // namespace troupe::on_host
