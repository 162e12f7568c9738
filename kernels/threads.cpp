// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/threads.hpp"

#include <future>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe {

std::thread start_thread(int total, std::function<void()> work) {
  try {
    return std::thread{std::move(work)};
  } catch (const std::system_error& error) {
    throw no_thread{"cannot start " + std::to_string(total)
                    + (total == 1 ? " thread: " : " threads: ")
                    + error.code().message()};
  }
}

int count_of_free_threads(int most) {
  std::promise<void> end;
  const auto ended = end.get_future().share();
  std::vector<std::thread> started;
  try {
    while (std::ssize(started) < most)
      started.emplace_back([ended] { ended.wait(); });
  } catch (const std::system_error&) { // NOLINT(bugprone-empty-catch): counted
  }
  end.set_value();
  for (auto& thread : started)
    thread.join();
  return static_cast<int>(started.size());
}

} // namespace troupe
