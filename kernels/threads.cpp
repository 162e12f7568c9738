// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/threads.hpp"

#include <future>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace troupe {

std::thread start_thread(int of, std::function<void()> work) {
  try {
    return std::thread{std::move(work)};
  } catch (const std::system_error& wrong) {
    throw no_thread{"cannot start " + std::to_string(of)
                    + (of == 1 ? " thread: " : " threads: ") + wrong.code().message()};
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
  for (auto& one : started)
    one.join();
  return static_cast<int>(started.size());
}

} // namespace troupe
