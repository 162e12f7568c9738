// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/node_status.hpp"

#include "actors/nodes/receive_queue.hpp"
#include "messaging/links/expects_tls.hpp"

#include <utility>
#include <variant>

namespace troupe {

namespace {

struct line_ending {
  std::string why;
};

constexpr const char* no_answer_of_nodes = "the answer is not from a node";

/// The possible reasons of an answer that no node sends, for a sentence.
std::string advice(const connector& links) {
  return std::string{"; perhaps "} + (links.encrypts() ? "" : "the node needs --tls, ")
         + "versions of troupe differ, or the address is of another program";
}

} // namespace

tl::expected<mail::node_status, std::string>
status_of(const node_address& where, connector& links,
          std::chrono::milliseconds timeout, const session_id& session) {
  auto stream = links.greet(
    where, {.session = session.session, .generation = session.generation}, timeout);
  if (!stream)
    return tl::unexpected{stream.error()};
  receive_queue<std::variant<wire::node_message, line_ending>> answers;
  const auto line =
    links.line(std::move(*stream),
               {.received =
                  [&](const control_frame& frame) {
                    if (auto message = wire::decode_node_message(frame.text))
                      answers.put(std::move(*message));
                    else
                      answers.put(line_ending{no_answer_of_nodes});
                  },
                .ended =
                  [&](const std::string& why) {
                    answers.put(line_ending{
                      why.empty() ? std::string{closed_line} + before_anything : why});
                  }});
  line->send(mail::ask_status{});
  auto answer = answers.take(timeout);
  line->close();
  const auto refuse = [&](const std::string& why) {
    return tl::unexpected{"node " + to_string(where) + ": " + why};
  };
  if (!answer)
    return refuse("the node does not answer");
  if (const auto* const end = std::get_if<line_ending>(&*answer))
    return refuse(end->why == expects_tls ? end->why : end->why + advice(links));
  auto& message = std::get<wire::node_message>(*answer);
  if (auto* const status = std::get_if<mail::node_status>(&message))
    return std::move(*status);
  if (const auto* const rejection = std::get_if<mail::refused>(&message))
    return refuse(rejection->why);
  return refuse(std::string{no_answer_of_nodes} + advice(links));
}

} // namespace troupe
