// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/throughput.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

namespace troupe {

namespace {

constexpr double remembered = 10, least = 0.5; // seconds
constexpr double apart = 0.1;                  // seconds, so that there are few points

} // namespace

void throughput::add(double seconds, double done) {
  now_ = seconds;
  if (!changes_.empty() && done < changes_.back().done)
    changes_.clear();
  if (!changes_.empty() && done == changes_.back().done)
    return;
  const auto count = changes_.size();
  if (count > 1 && seconds - changes_[count - 2].seconds < apart)
    changes_.pop_back();
  changes_.push_back({seconds, done});
  while (changes_.size() > 2 && seconds - changes_[1].seconds >= remembered)
    changes_.pop_front();
}

std::optional<double> throughput::rate() const {
  if (changes_.empty())
    return {};
  const auto& [first, last] = std::pair{changes_.front(), changes_.back()};
  const double time = (changes_.size() > 1 ? last.seconds : now_) - first.seconds;
  return time < least ? std::nullopt : std::optional{(last.done - first.done) / time};
}

std::optional<double> throughput::left(double total) const {
  const auto now = rate();
  if (!now || *now <= 0)
    return {};
  return std::max(0.0, (total - changes_.back().done) / *now);
}

double seconds_now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

std::string time_left(double seconds) {
  char text[60];
  const double minutes = std::round(seconds / 60);
  if (seconds <= 99)
    std::snprintf(text, sizeof text, "%.0f s left", std::ceil(seconds));
  else if (minutes < 100)
    std::snprintf(text, sizeof text, "%.0f min left", minutes);
  else if (minutes < 48 * 60)
    std::snprintf(text, sizeof text, "%.0f h %.0f min left", std::floor(minutes / 60),
                  std::fmod(minutes, 60));
  else
    std::snprintf(text, sizeof text, "%.0f days left", std::round(minutes / 60 / 24));
  return text;
}

std::string rate_text(double a_second) {
  char text[60];
  const int digits = a_second < 9.995 ? 2 : a_second < 99.95 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f", digits, a_second);
  return text;
}

} // namespace troupe
