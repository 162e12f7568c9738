// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/connector.hpp"
#include "actors/nodes/inbox.hpp"
#include "actors/nodes/mailroom.hpp"
#include "actors/run/gpu_groups.hpp"

#include <tl/expected.hpp>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace troupe {

/// What a node does for a lead, from `prepare` to the end.
struct player_means {
  /// Makes the plan that a lead describes, within what the node allows. On error says
  /// why it does not.
  std::function<tl::expected<run_plan, std::string>(const mail::prepare&)> plan;

  connector* by = nullptr;
};

/// Plays a node's part of one run: its ranks are here.
class player {
public:
  /// \param lead the control line that `begins` came on \param means outlives it
  player(const player_means& means, mail::prepare begins,
         std::shared_ptr<control_line> lead);
  ~player();
  player(const player&) = delete;
  player& operator=(const player&) = delete;

  /// Plays until the run ends, the lead is lost, or `stop` is set. Tells the lead if it
  /// cannot.
  void play(const std::atomic<bool>* stop = nullptr);

  // From other threads: what comes from the lead, and from other nodes of the run.
  void hear(control_frame frame);
  void lose_lead();
  bool expects(const greeting& guest) const;
  void join(const greeting& guest, std::unique_ptr<byte_stream> stream);

  /// In words.
  std::string description() const;

private:
  struct lead_lost {};
  using event = std::variant<wire::node_mail, lead_lost>;
  class shown;

  std::optional<wire::node_mail> next(std::chrono::milliseconds patience);
  template <class Message>
  Message await();
  void join_others();
  std::shared_ptr<control_line> line_to(int node, std::unique_ptr<byte_stream> stream);
  std::unique_ptr<ensemble, end_or_leave>
  make_ensemble(const std::shared_ptr<const run_plan>& plan, known_groups groups);
  void perform(const std::shared_ptr<const run_plan>& plan, known_groups groups);
  void work(ensemble& here);
  static bool answer(ensemble& here, const wire::node_mail& what);
  void come_home(ensemble& here);
  void beat();
  void lose(int node, const std::string& why);

  /// Of those whose actors could not be ended.
  static std::vector<std::shared_ptr<mailroom>> left_;

  const player_means& means_;
  mail::prepare facts_;
  session_id session_;
  std::shared_ptr<control_line> lead_;
  inbox<event> inbox_;
  std::atomic<nanoseconds> heard_lead_;
  std::atomic<bool> lead_gone_ = false;
  std::atomic<int> probes_ = 0; // of the clock, by the lead

  std::mutex lock_;
  std::condition_variable news_;
  std::optional<layer_values> layers_; // before who fills it
  std::shared_ptr<mailroom> mail_;
  std::map<int, std::shared_ptr<control_line>> lines_; // to other nodes
  const std::atomic<bool>* stop_ = nullptr;            // of play()
  std::set<std::pair<int, greeting::purpose>> joined_; // connections of others
  ensemble* here_ = nullptr;                           // for beats
  bool over_ = false;
  std::thread beats_;
};

} // namespace troupe
