// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/group_calls.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {

namespace {

[[noreturn]] void complain(const collective_message& call,
                           const std::string& local_state) {
  throw std::logic_error{
    "member " + std::to_string(call.from) + " of a group of GPUs calls collective "
    + std::to_string(call.instance) + " as number " + std::to_string(call.call)
    + ", and member " + std::to_string(call.to) + ' ' + local_state};
}

} // namespace

std::vector<collective_message> group_calls::begin(const collective_part& part,
                                                   const collective_memory& memory) {
  auto& entry = under_way_
                  .emplace(part.instance,
                           pending_collective{started_++, memory, gpu_script{part}, {}})
                  .first->second;
  std::vector<collective_message> result;
  for (int member = 0; member < part.ranks; ++member)
    if (member != part.rank) {
      entry.missing.insert(member);
      result.push_back({.instance = part.instance,
                        .round = 0,
                        .from = part.rank,
                        .to = member,
                        .range = {},
                        .values = entry.script.sent_to(member),
                        .payload = {},
                        .bytes = fp32_codec().bytes(entry.script.sent_to(member)),
                        .call = entry.number});
    }
  if (auto early = early_.extract(part.instance))
    for (const auto& call : early.mapped())
      receive(call);
  for (const auto& [instance, calls] : early_)
    for (const auto& call : calls)
      if (call.call == entry.number)
        complain(call, "collective " + std::to_string(part.instance));
  return result;
}

void group_calls::receive(const collective_message& call) {
  if (!call.is_call())
    throw std::logic_error{
      "values of collective " + std::to_string(call.instance)
      + " came as a message, but GPUs exchange these values directly"};
  const auto match = under_way_.find(call.instance);
  if (match == under_way_.end() || is_launched(match->second)) {
    for (const auto& [instance, entry] : under_way_)
      if (entry.number == call.call)
        complain(call, "collective " + std::to_string(instance));
    early_[call.instance].push_back(call);
    return;
  }
  if (match->second.number != call.call)
    complain(call, "as number " + std::to_string(match->second.number));
  if (match->second.missing.erase(call.from) == 0)
    complain(call, "has received that call before");
}

std::optional<group_calls::launch> group_calls::next() {
  const auto match = std::ranges::find_if(
    under_way_, [this](const auto& item) { return item.second.number == launched_; });
  if (match == under_way_.end() || !match->second.missing.empty())
    return {};
  auto& entry = match->second;
  ++launched_;
  return launch{
    match->first,
    {.values = entry.script.part().source.values(),
     .run =
       [script = entry.script, memory = entry.memory, group = group_] {
         script.launch(memory, *group.group_communicator, *group.group_stream);
       },
     .target_device = group_.launches,
     .check = [group_communicator =
                 group_.group_communicator] { group_communicator->check(); }}};
}

bool group_calls::exchanges() const {
  return std::ranges::any_of(
    under_way_, [this](const auto& item) { return is_launched(item.second); });
}

std::optional<group_calls::missing> group_calls::waits_for() const {
  for (const auto& [instance, entry] : under_way_)
    if (!entry.missing.empty())
      return missing{instance, *entry.missing.begin()};
  return {};
}

} // namespace troupe
