// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/group_calls.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {

namespace {

[[noreturn]] void complain(const collective_message& call, const std::string& own) {
  throw std::logic_error{
    "member " + std::to_string(call.from) + " of a group of GPUs makes collective "
    + std::to_string(call.instance) + " its number " + std::to_string(call.call)
    + ", and member " + std::to_string(call.to) + ' ' + own};
}

} // namespace

std::vector<collective_message> group_calls::begin(const collective_part& part,
                                                   const collective_memory& memory) {
  auto& own =
    under_way_.emplace(part.instance, coming{begun_++, memory, gpu_script{part}, {}})
      .first->second;
  std::vector<collective_message> result;
  for (int other = 0; other < part.ranks; ++other)
    if (other != part.rank) {
      own.missing.insert(other);
      result.push_back({.instance = part.instance,
                        .round = 0,
                        .from = part.rank,
                        .to = other,
                        .what = {},
                        .values = own.script.sent_to(other),
                        .payload = {},
                        .call = own.number});
    }
  if (auto early = early_.extract(part.instance))
    for (const auto& call : early.mapped())
      take(call);
  for (const auto& [instance, calls] : early_)
    for (const auto& call : calls)
      if (call.call == own.number)
        complain(call, "collective " + std::to_string(part.instance));
  return result;
}

void group_calls::take(const collective_message& call) {
  if (!call.is_call())
    throw std::logic_error{"values of collective " + std::to_string(call.instance)
                           + " came as a message, and GPUs exchange them"};
  const auto found = under_way_.find(call.instance);
  if (found == under_way_.end() || is_launched(found->second)) {
    for (const auto& [instance, own] : under_way_)
      if (own.number == call.call)
        complain(call, "collective " + std::to_string(instance));
    early_[call.instance].push_back(call);
    return;
  }
  if (found->second.number != call.call)
    complain(call, "its number " + std::to_string(found->second.number));
  if (found->second.missing.erase(call.from) == 0)
    complain(call, "heard that before");
}

std::optional<group_calls::launch> group_calls::next() {
  const auto found = std::ranges::find_if(
    under_way_, [this](const auto& one) { return one.second.number == launched_; });
  if (found == under_way_.end() || !found->second.missing.empty())
    return {};
  auto& own = found->second;
  ++launched_;
  return launch{found->first,
                {.values = own.script.part().source.values(),
                 .run = [script = own.script, memory = own.memory,
                         of = of_] { script.launch(memory, *of.by, *of.on); },
                 .on = of_.launches,
                 .check = [by = of_.by] { by->check(); }}};
}

bool group_calls::exchanges() const {
  return std::ranges::any_of(
    under_way_, [this](const auto& one) { return is_launched(one.second); });
}

std::optional<group_calls::missing> group_calls::waits_for() const {
  for (const auto& [instance, own] : under_way_)
    if (!own.missing.empty())
      return missing{instance, *own.missing.begin()};
  return {};
}

} // namespace troupe
