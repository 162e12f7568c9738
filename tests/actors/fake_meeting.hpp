// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"

#include <map>
#include <string>
#include <vector>

namespace tiny {

using namespace troupe;

/// A meeting for tests. Begins write the index to a log and return a message with that
/// index to parameter server 0. A meeting is over when the test says so.
class fake_meeting : public meeting {
public:
  /// \param name,log name of the meeting in the log; the log outlives this object
  fake_meeting(std::string name, std::vector<std::string>& log)
    : name_(std::move(name)), log_(&log) {
    // nop
  }

  meeting_messages begin(int occasion) override {
    log_->push_back(name_ + " " + std::to_string(occasion));
    open_[occasion] = true;
    return {
      {{role::parameter_server, {}}, meeting_kind::servers, mail::pulled{occasion}}};
  }
  meeting_messages receive(mail::meeting_message) override { return {}; }
  bool is_done(int occasion) const override {
    const auto found = open_.find(occasion);
    return found == open_.end() || !found->second;
  }
  std::optional<missing_peer> waits_for() const override {
    for (const auto& [occasion, open] : open_)
      if (open)
        return missing_peer{name_ + " " + std::to_string(occasion), "the others"};
    return {};
  }

  void end(int occasion) { open_[occasion] = false; }

private:
  std::string name_;
  std::vector<std::string>* log_;
  std::map<int, bool> open_;
};

/// The indices in the messages of such meetings.
inline std::vector<int> numbers_of(const meeting_messages& all) {
  std::vector<int> result;
  for (const auto& one : all)
    result.push_back(std::get<mail::pulled>(one.body).server);
  return result;
}

} // namespace tiny
