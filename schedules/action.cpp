#include "schedules/action.hpp"

#include <array>

namespace troupe {

char letter_of(op what) {
  constexpr std::array letters{'F', 'B', 'I', 'W', 'U', 'R'};
  return letters[static_cast<std::size_t>(what)];
}

std::string to_string(const action& a, bool with_stage) {
  auto result = letter_of(a.what) + std::to_string(a.microbatch);
  if (with_stage)
    result += " of stage " + std::to_string(a.stage);
  if (with_stage && a.direction > 0)
    result += " (replica " + std::to_string(a.direction) + ")";
  return result;
}

} // namespace troupe
