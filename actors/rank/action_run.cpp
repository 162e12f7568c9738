// SPDX-License-Identifier: BSD-3-Clause
#include "actors/rank/action_run.hpp"

namespace troupe {

/// \param e the end of the part that has run; times are 0 if nothing ran
void action_run::pause(const mail::ended& e) {
  cursor_.pause();
  auto measured = so_far_();
  measured.part = true;
  mail::set_times(measured, e);
  measured.ends_in = cursor_.take_end();
  port_->paused(measured);
}

void action_run::resume(std::int64_t turn) {
  if (!cursor_.can_resume())
    return pause({});
  meeting_messages out;
  auto next = cursor_.next_work(out);
  next.turn = turn;
  port_->send_all(std::move(out));
  port_->compute(std::move(next), cursor_.current_action());
}

bool action_run::ended(const mail::ended& e) {
  port_->send_all(cursor_.end_work());
  if (!cursor_.under_way())
    return true;
  pause(e);
  poll();
  return false;
}

void action_run::poll() {
  if (cursor_.resumes())
    port_->arrived(cursor_.current_action());
}

std::optional<mail::waiting_for> action_run::explain(const std::string& name) const {
  if (cursor_.at_work())
    return mail::waiting_for{
      name, to_string(cursor_.current_action()) + " to end on its device", ""};
  if (!cursor_.under_way() || !cursor_.waits())
    return {};
  const auto missing = cursor_.waits_for();
  if (!missing)
    return mail::waiting_for{
      name, "its scheduler to resume " + to_string(cursor_.current_action()), ""};
  const auto* const link = missing->peer.empty() ? " for " : " of ";
  return mail::waiting_for{name,
                           missing->input + link + to_string(cursor_.current_action()),
                           missing->peer, missing->user_code};
}

} // namespace troupe
