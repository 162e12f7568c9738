// SPDX-License-Identifier: BSD-3-Clause
#include "actors/run/run_status.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

template <class Change>
void run_status::change(const Change& c) {
  {
    const std::lock_guard guard{lock_};
    c();
    changed_ = true;
  }
  news_.notify_all();
}

void run_status::post_finished() {
  change([this] { finished_ = true; });
}

void run_status::post_failure(std::string why) {
  change([&] {
    if (!failure_)
      failure_ = std::move(why);
  });
}

void run_status::post_held() {
  change([this] { held_ = true; });
}

void run_status::post_checkpoint(int batches) {
  change([&] { checkpoint_ = batches; });
}

void run_status::post_snapshot(snapshot s) {
  change([&] { snapshots_.push_back(std::move(s)); });
}

void run_status::post_collected(std::vector<mail::collected> answers) {
  change([&] { collected_ = std::move(answers); });
}

void run_status::post_copied() {
  change([this] { copied_ = true; });
}

void run_status::post_saved(std::vector<mail::saved> copies) {
  change([&] { saved_ = std::move(copies); });
}

void run_status::post_kept_state(mail::kept_state copies) {
  change([&] { kept_state_.push_back(std::move(copies)); });
}

void run_status::post_explanation(mail::waiting_for explanation) {
  change([&] { explanations_.push_back(std::move(explanation)); });
}

void run_status::post_waiting(std::string for_whom) {
  const std::lock_guard guard{lock_};
  progress_.waits_for = std::move(for_whom);
}

// Wakes no thread: the waiting thread reads the progress at intervals.
void run_status::post_progress(const progress& p) {
  const std::lock_guard guard{lock_};
  progress_.samples = p.samples;
  progress_.loss = p.loss;
  progress_.losses.insert(progress_.losses.end(), p.losses.begin(), p.losses.end());
}

void run_status::post_updates(const std::vector<update_so_far>& updates) {
  const std::lock_guard guard{lock_};
  progress_.updates.insert(progress_.updates.end(), updates.begin(), updates.end());
}

// The waiting thread takes actions ten times a second, unless the caller is busy for
// long.
void run_status::post_actions(const std::vector<ranked_action>& ran) {
  constexpr std::ptrdiff_t most = 20'000;
  if (ran.empty())
    return;
  const std::lock_guard guard{lock_};
  auto& recent = actions_.ran;
  recent.insert(recent.end(), ran.begin(), ran.end());
  if (std::ssize(recent) <= most)
    return;
  const auto kept = recent.end() - most / 2;
  for (auto old = recent.begin(); old != kept; ++old)
    actions_.dropped_to = std::max(actions_.dropped_to, old->measured.end);
  recent.erase(recent.begin(), kept);
}

void run_status::wait(std::chrono::milliseconds at_most) {
  std::unique_lock guard{lock_};
  news_.wait_for(guard, at_most, [this] { return changed_.load(); });
  changed_ = false;
}

bool run_status::finished() const {
  const std::lock_guard guard{lock_};
  return finished_;
}

std::optional<std::string> run_status::failure() const {
  const std::lock_guard guard{lock_};
  return failure_;
}

progress run_status::take_progress() {
  const std::lock_guard guard{lock_};
  auto result = progress_;
  progress_.losses.clear();
  progress_.updates.clear();
  return result;
}

recent_actions run_status::take_actions() {
  const std::lock_guard guard{lock_};
  return std::exchange(actions_, {});
}

bool run_status::take_held() {
  const std::lock_guard guard{lock_};
  return std::exchange(held_, false);
}

std::optional<int> run_status::take_checkpoint() {
  const std::lock_guard guard{lock_};
  return std::exchange(checkpoint_, {});
}

std::optional<run_status::snapshot> run_status::take_snapshot() {
  const std::lock_guard guard{lock_};
  if (snapshots_.empty())
    return {};
  auto result = std::move(snapshots_.front());
  snapshots_.pop_front();
  return result;
}

std::optional<std::vector<mail::collected>> run_status::take_collected() {
  const std::lock_guard guard{lock_};
  return std::exchange(collected_, {});
}

bool run_status::take_copied() {
  const std::lock_guard guard{lock_};
  return std::exchange(copied_, false);
}

std::optional<std::vector<mail::saved>> run_status::take_saved() {
  const std::lock_guard guard{lock_};
  return std::exchange(saved_, {});
}

std::vector<mail::kept_state> run_status::take_kept_state() {
  const std::lock_guard guard{lock_};
  return std::exchange(kept_state_, {});
}

std::vector<mail::waiting_for> run_status::explanations() const {
  const std::lock_guard guard{lock_};
  return explanations_;
}

} // namespace troupe
