// SPDX-License-Identifier: BSD-3-Clause
#include "actors/rank/conversation.hpp"

namespace troupe {

void conversation::pause(nanoseconds start, nanoseconds end) {
  walk_.pause();
  auto measured = so_far_();
  measured.part = true;
  measured.start = start;
  measured.end = end;
  measured.ends_in = walk_.take_end();
  port_->paused(measured);
}

void conversation::go_on(std::int64_t turn) {
  if (!walk_.can_go_on())
    return pause(0, 0);
  letters out;
  auto next = walk_.next_work(out);
  next.turn = turn;
  port_->send_all(std::move(out));
  port_->compute(std::move(next), walk_.what());
}

bool conversation::ended(nanoseconds start, nanoseconds end) {
  port_->send_all(walk_.end_work());
  if (!walk_.under_way())
    return true;
  pause(start, end);
  look_again();
  return false;
}

void conversation::look_again() {
  if (walk_.resumes())
    port_->arrived(walk_.what());
}

std::optional<mail::waiting_for> conversation::explain(const std::string& who) const {
  if (walk_.at_work())
    return mail::waiting_for{who, to_string(walk_.what()) + " to end on its device",
                             ""};
  if (!walk_.under_way() || !walk_.waits())
    return {};
  const auto missing = walk_.waits_for();
  if (!missing)
    return mail::waiting_for{who, "leave to go on with " + to_string(walk_.what()), ""};
  const auto* const link = missing->whom.empty() ? " for " : " of ";
  return mail::waiting_for{who, missing->what + link + to_string(walk_.what()),
                           missing->whom, missing->own};
}

} // namespace troupe
