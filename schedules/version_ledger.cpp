// SPDX-License-Identifier: BSD-3-Clause
#include "schedules/version_ledger.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace troupe {

version_ledger::version_ledger(int older) : oldest_needed_(-older) {
  for (int version = -older; version <= 0; ++version)
    alive_.push_back({version, 0});
}

bool version_ledger::contains(int version) const {
  return std::ranges::find(alive_, version, &entry::number) != alive_.end();
}

void version_ledger::hold(int version) {
  ++find(version).holders;
}

void version_ledger::release(int version) {
  --find(version).holders;
  prune();
}

void version_ledger::need_from(int oldest) {
  oldest_needed_ = oldest;
  prune();
  peak_ = std::max(peak_, alive());
}

bool version_ledger::advance() {
  auto& last = alive_.back();
  const bool in_place = last.holders == 0 && last.number < oldest_needed_;
  if (in_place)
    ++last.number;
  else
    alive_.push_back({last.number + 1, 0});
  peak_ = std::max(peak_, alive());
  return in_place;
}

version_ledger::entry& version_ledger::find(int version) {
  const auto match = std::ranges::find(alive_, version, &entry::number);
  if (match == alive_.end())
    throw std::logic_error("weight version " + std::to_string(version)
                           + " is gone; the newest is " + std::to_string(newest()));
  return *match;
}

void version_ledger::prune() {
  const int newest_number = newest();
  std::erase_if(alive_, [&](const entry& e) {
    return e.number != newest_number && e.holders == 0 && e.number < oldest_needed_;
  });
}

} // namespace troupe
