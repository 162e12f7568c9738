// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/notice_board.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

template <class Change>
void notice_board::change(const Change& c) {
  {
    const std::lock_guard guard{lock_};
    c();
    changed_ = true;
  }
  news_.notify_all();
}

void notice_board::post_finished() {
  change([this] { finished_ = true; });
}

void notice_board::post_failure(std::string why) {
  change([&] {
    if (!failure_)
      failure_ = std::move(why);
  });
}

void notice_board::post_held() {
  change([this] { held_ = true; });
}

void notice_board::post_checkpoint(int batches) {
  change([&] { checkpoint_ = batches; });
}

void notice_board::post_snapshot(snapshot s) {
  change([&] { snapshots_.push_back(std::move(s)); });
}

void notice_board::post_collected(std::vector<mail::collected> all) {
  change([&] { collected_ = std::move(all); });
}

void notice_board::post_copied() {
  change([this] { copied_ = true; });
}

void notice_board::post_saved(std::vector<mail::saved> all) {
  change([&] { saved_ = std::move(all); });
}

void notice_board::post_recalled(mail::recalled one) {
  change([&] { recalled_.push_back(std::move(one)); });
}

void notice_board::post_explanation(mail::waiting_for one) {
  change([&] { explanations_.push_back(std::move(one)); });
}

void notice_board::post_waiting(std::string for_whom) {
  const std::lock_guard guard{lock_};
  progress_.waits_for = std::move(for_whom);
}

// Wakes no thread: the waiting thread reads the progress at intervals.
void notice_board::post_progress(const progress& p) {
  const std::lock_guard guard{lock_};
  progress_.samples = p.samples;
  progress_.loss = p.loss;
  progress_.losses.insert(progress_.losses.end(), p.losses.begin(), p.losses.end());
}

// The waiting thread takes actions ten times a second, unless the caller is busy for
// long.
void notice_board::post_actions(const std::vector<ranked_action>& ran) {
  constexpr std::ptrdiff_t most = 20'000;
  if (ran.empty())
    return;
  const std::lock_guard guard{lock_};
  auto& all = actions_.ran;
  all.insert(all.end(), ran.begin(), ran.end());
  if (std::ssize(all) <= most)
    return;
  const auto kept = all.end() - most / 2;
  for (auto old = all.begin(); old != kept; ++old)
    actions_.dropped_to = std::max(actions_.dropped_to, old->what.end);
  all.erase(all.begin(), kept);
}

void notice_board::wait(std::chrono::milliseconds at_most) {
  std::unique_lock guard{lock_};
  news_.wait_for(guard, at_most, [this] { return changed_.load(); });
  changed_ = false;
}

bool notice_board::finished() const {
  const std::lock_guard guard{lock_};
  return finished_;
}

std::optional<std::string> notice_board::failure() const {
  const std::lock_guard guard{lock_};
  return failure_;
}

progress notice_board::take_progress() {
  const std::lock_guard guard{lock_};
  auto result = progress_;
  progress_.losses.clear();
  return result;
}

recent_actions notice_board::take_actions() {
  const std::lock_guard guard{lock_};
  return std::exchange(actions_, {});
}

bool notice_board::take_held() {
  const std::lock_guard guard{lock_};
  return std::exchange(held_, false);
}

std::optional<int> notice_board::take_checkpoint() {
  const std::lock_guard guard{lock_};
  return std::exchange(checkpoint_, {});
}

std::optional<notice_board::snapshot> notice_board::take_snapshot() {
  const std::lock_guard guard{lock_};
  if (snapshots_.empty())
    return {};
  auto result = std::move(snapshots_.front());
  snapshots_.pop_front();
  return result;
}

std::optional<std::vector<mail::collected>> notice_board::take_collected() {
  const std::lock_guard guard{lock_};
  return std::exchange(collected_, {});
}

bool notice_board::take_copied() {
  const std::lock_guard guard{lock_};
  return std::exchange(copied_, false);
}

std::optional<std::vector<mail::saved>> notice_board::take_saved() {
  const std::lock_guard guard{lock_};
  return std::exchange(saved_, {});
}

std::vector<mail::recalled> notice_board::take_recalled() {
  const std::lock_guard guard{lock_};
  return std::exchange(recalled_, {});
}

std::vector<mail::waiting_for> notice_board::explanations() const {
  const std::lock_guard guard{lock_};
  return explanations_;
}

} // namespace troupe
