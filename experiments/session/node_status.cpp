// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/node_status.hpp"

#include "actors/nodes/inbox.hpp"

#include <utility>

namespace troupe {

tl::expected<mail::node_status, std::string>
status_of(const node_address& where, connector& links,
          std::chrono::milliseconds patience, const session_id& session) {
  auto stream = links.greet(
    where, {.session = session.session, .generation = session.generation}, patience);
  if (!stream)
    return tl::unexpected{stream.error()};
  inbox<std::optional<wire::node_mail>> answers; // absent: the line has ended
  const auto hear = [&](const control_frame& frame) {
    auto what = wire::decode_node_mail(frame.text);
    answers.put(what ? std::optional{std::move(*what)} : std::nullopt);
  };
  const auto line = links.line(
    std::move(*stream),
    {.heard = hear, .ended = [&](const std::string&) { answers.put(std::nullopt); }});
  line->send(mail::ask_status{});
  auto answer = answers.take(patience);
  line->close();
  auto* const status =
    answer && *answer ? std::get_if<mail::node_status>(&**answer) : nullptr;
  if (status != nullptr)
    return std::move(*status);
  auto* const refusal =
    answer && *answer ? std::get_if<mail::refused>(&**answer) : nullptr;
  if (refusal != nullptr)
    return tl::unexpected{"node " + to_string(where) + ": " + refusal->why};
  return tl::unexpected{to_string(where) + " does not answer as a node does"};
}

} // namespace troupe
