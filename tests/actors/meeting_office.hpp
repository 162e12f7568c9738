// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"

#include <catch2/catch_test_macros.hpp>

#include <deque>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace tiny {

using namespace troupe;

/// Runs members of meetings in one thread, and delivers messages between members. A
/// member runs steps in order, each when its condition holds. Chance chooses the next
/// step and the next message, so messages overtake each other and may come early. Where
/// meetings yield sums, chance chooses when each sum ends. Repeated messages arrive a
/// second time, at a time that chance chooses.
class meeting_office {
public:
  explicit meeting_office(bool yields_sums = false, bool repeats = false)
    : yields_sums_(yields_sums), repeats_(repeats) {
    // nop
  }

  struct step {
    std::function<bool()> may; ///< Condition; empty: at once.
    std::function<meeting_messages()> go;
  };

  /// \param at outlives this object
  void join(performer who, meeting_kind about, meeting& at, std::vector<step> steps) {
    members_.push_back({who, about, &at, std::move(steps)});
    if (yields_sums_)
      at.yield_sums([this, who](requested_sum s) {
        CHECK(s.sum.values > 0);
        ++sums;
        sums_.emplace_back(who, std::move(s));
      });
  }

  /// \param seed 0: without chance, every step as soon as the condition holds, and
  /// messages in the order of sending
  void run(unsigned seed) {
    std::mt19937 chance{seed};
    for (;;) {
      const auto ready = ready_members();
      const auto letters = ready.size() + under_way_.size();
      const auto choices = letters + sums_.size();
      if (choices == 0)
        break;
      const auto choice = seed == 0 ? 0 : chance() % choices;
      if (choice < ready.size())
        send(ready[choice]->steps[ready[choice]->next++].go());
      else if (choice < letters)
        deliver(choice - ready.size());
      else
        do_sum(choice - letters);
    }
    for (const auto& m : members_)
      CHECK(m.next == m.steps.size());
  }

  int sums = 0; ///< Sums that meetings have requested.

private:
  struct member {
    performer who;
    meeting_kind about;
    meeting* at;
    std::vector<step> steps;
    std::size_t next = 0;
  };

  std::vector<member*> ready_members() {
    std::vector<member*> result;
    for (auto& m : members_)
      if (m.next < m.steps.size() && (!m.steps[m.next].may || m.steps[m.next].may()))
        result.push_back(&m);
    return result;
  }

  void send(meeting_messages all) {
    for (auto& one : all)
      under_way_.push_back({std::move(one), repeats_});
  }

  void deliver(std::size_t index) {
    auto [letter, again] = std::move(under_way_[index]);
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(index));
    if (again)
      under_way_.push_back({letter, false});
    for (auto& m : members_)
      if (m.who == letter.to && m.about == letter.meeting)
        return send(m.at->receive(std::move(letter)));
    FAIL("a letter to nobody");
  }

  /// Computes one sum, and delivers the message of the sum's end.
  void do_sum(std::size_t index) {
    const auto [who, sum] = std::move(sums_[index]);
    sums_.erase(sums_.begin() + static_cast<std::ptrdiff_t>(index));
    if (sum.sum.run)
      sum.sum.run();
    under_way_.push_back({{who, sum.meeting, mail::sum_over{sum.number}}, false});
  }

  bool yields_sums_, repeats_;
  std::vector<member> members_;
  std::deque<std::pair<mail::meeting_message, bool>>
    under_way_; // and whether to deliver again
  std::deque<std::pair<performer, requested_sum>> sums_;
};

/// Random whole numbers: the sum is the same in any order.
inline std::vector<float> random_numbers(std::mt19937& chance, std::int64_t count) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < count; ++i)
    result.push_back(static_cast<float>(static_cast<int>(chance() % 199) - 99));
  return result;
}

/// Values [count * i / n, count * (i + 1) / n) of an array.
inline std::vector<float> part_of(const std::vector<float>& all, std::size_t i,
                                  std::size_t n) {
  const auto at = [&](std::size_t k) {
    return all.begin() + static_cast<std::ptrdiff_t>(all.size() * k / n);
  };
  return {at(i), at(i + 1)};
}

/// The sum of arrays, value by value.
inline std::vector<float> sum_of(const std::vector<std::vector<float>>& all) {
  auto result = all.front();
  for (std::size_t a = 1; a < all.size(); ++a)
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] += all[a][i];
  return result;
}

} // namespace tiny
