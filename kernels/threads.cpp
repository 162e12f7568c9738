#include "kernels/threads.hpp"

#include <string>
#include <system_error>
#include <utility>

namespace troupe {

std::thread start_thread(int of, std::function<void()> work) {
  try {
    return std::thread{std::move(work)};
  } catch (const std::system_error& wrong) {
    throw no_thread{"cannot start " + std::to_string(of)
                    + (of == 1 ? " thread: " : " threads: ") + wrong.code().message()};
  }
}

} // namespace troupe
