// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/message_text.hpp"
#include "actors/pipeline/stage_core.hpp"
#include "messaging/mail/turns.hpp"

#include <catch2/catch_test_macros.hpp>

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace tiny {

using namespace troupe;

/// A port that records each request of a core as a line, and keeps work and messages.
/// Cores are tested with this port in place of an actor system.
class written_port : public stage_port {
public:
  std::vector<std::string> lines;
  std::deque<std::pair<work, action>> works;
  std::deque<requested_sum> sums;
  std::vector<mail::meeting_message> letters;
  std::vector<measured_action> measured; ///< From `paused` and `done`.
  bool copies_on_device = true;

  /// Returns the lines that were recorded since the last call, and clears the record.
  std::vector<std::string> news() { return std::exchange(lines, {}); }
  std::vector<mail::meeting_message> mail() { return std::exchange(letters, {}); }

  /// Runs the first work that is left, and reports the end to the core.
  template <class Core>
  void run_work(Core& core, nanoseconds start = 1, nanoseconds end = 2,
                nanoseconds off_processor_time = 0) {
    auto [what, a] = std::move(works.front());
    works.pop_front();
    if (what.run)
      what.run();
    for (auto& part : what.parts) {
      if (part.run)
        part.run();
      if (part.on_done)
        part.on_done();
    }
    core.ended(mail::ended{a, start, end, nullptr, off_processor_time});
  }

  /// Computes the first requested sum, and reports the end to the core.
  template <class Core>
  void do_sum(Core& core) {
    const auto first = std::move(sums.front());
    sums.pop_front();
    if (first.sum.run)
      first.sum.run();
    core.receive(
      mail::meeting_message{{}, first.meeting, mail::sum_over{first.number}});
  }

  void arrived(const action& a) override { lines.push_back("arrived " + to_string(a)); }
  void paused(const measured_action& so_far) override {
    lines.push_back("paused " + to_string(so_far.action));
    measured.push_back(so_far);
  }
  void done(const measured_action& all) override {
    lines.push_back("done " + to_string(all.action));
    measured.push_back(all);
  }
  void compute(work what, const action& a) override {
    lines.push_back("computes " + to_string(a));
    works.emplace_back(std::move(what), a);
  }
  void sum(requested_sum what) override {
    lines.push_back("asks for a sum of " + std::to_string(what.sum.values));
    sums.push_back(std::move(what));
  }
  void send(mail::meeting_message what) override {
    lines.push_back("writes " + text_of(what.body));
    letters.push_back(std::move(what));
  }

  bool copies_aside() const override { return copies_on_device; }
  void demand() override { lines.push_back("demands"); }
  void send_on(activation what) override {
    lines.push_back("sends on " + std::to_string(what.header.microbatch)
                    + (what.pending_write ? " ahead" : ""));
  }
  void send_back(gradient what) override {
    lines.push_back("sends back " + std::to_string(what.header.microbatch)
                    + (what.pending_write ? " ahead" : ""));
  }
  bucket_notifier notifier() override {
    return [this](const mail::bucket_ready& bucket) {
      lines.push_back("tells of bucket " + std::to_string(bucket.bucket));
    };
  }
  on_launched launch_notifier(const action&) override {
    return [](const std::shared_ptr<gpu_completion>&) {};
  }
  void report(const mail::microbatch_loss& loss) override {
    lines.push_back("reports the loss of " + std::to_string(loss.microbatch));
  }
  void report(mail::expert_load) override { lines.push_back("reports loads"); }
  void report(const mail::update_part& part) override {
    lines.push_back("reports update " + std::to_string(part.version));
  }
  void report(mail::version_made v) override {
    lines.push_back("reports version " + std::to_string(v.version));
  }
  void report(mail::snapshot s) override {
    lines.push_back("reports a snapshot after " + std::to_string(s.batches));
  }

private:
  static std::string text_of(const mail::meeting_message::content& what) {
    return std::visit([](const auto& w) { return envelope_text(w); }, what);
  }
};

/// A port that requires a pool's only buffer to be free at each message: the receiver
/// may need the buffer at once.
class pool_watching_port : public written_port {
public:
  explicit pool_watching_port(pool& of) : of_(of) {}

  void send(mail::meeting_message what) override {
    CHECK_NOTHROW(of_.acquire());
    written_port::send(std::move(what));
  }

private:
  pool& of_;
};

} // namespace tiny
