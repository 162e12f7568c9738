// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/control_lines.hpp"
#include "actors/nodes/node_order.hpp"
#include "actors/run/awake_time.hpp"
#include "actors/run/notice_board.hpp"
#include "actors/run/stall.hpp"
#include "messaging/mail/nodes.hpp"
#include "messaging/wire/codec.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace troupe {

/// A node was lost, or cannot play.
struct node_failure : std::runtime_error {
  explicit node_failure(const std::string& why, bool loses = false)
    : std::runtime_error(why), is_loss(loses) {
    // nop
  }

  /// The node had answered before: no address or option is wrong.
  bool is_loss;
};

/// A refusal that no new start changes: options, files or versions have to.
struct lasting_refusal : node_failure {
  using node_failure::node_failure;
};

/// Nodes that would not make the bits of one run.
struct nodes_differ : lasting_refusal {
  using lasting_refusal::lasting_refusal;
};

/// The user has ended what waited for nodes.
struct ended_while_waiting : std::runtime_error {
  ended_while_waiting() : std::runtime_error("ended while nodes were waited for") {
    // nop
  }
};

/// What a lead knows of the nodes of a run: how far each has come, who is silent, and
/// what their clocks show. Nodes are counted from 1. A thread of its own says that the
/// lead is there, and notices who is not.
class roll_call {
public:
  /// How far a node has come.
  enum class step : std::uint8_t { none, known, prepared, connected, ready };

  /// \param names of the nodes, with their ranks: "node a:4242 (rank 0)"
  /// \param waits told of a node that plays another run, in words; may be empty
  /// \throws no_thread
  roll_call(std::vector<std::string> names, std::chrono::milliseconds failure_timeout,
            std::function<void(const std::string&)> waits);
  ~roll_call();
  roll_call(const roll_call&) = delete;
  roll_call& operator=(const roll_call&) = delete;

  /// A node can be spoken to from now on.
  void add(int node, std::shared_ptr<control_line> line);

  /// What a node has said.
  void take(int node, wire::node_mail what);

  /// A node has said something else.
  void note(int node);

  /// A node's line, or the link to it, has ended. \param link only that: nodes end
  /// those first when a run is over
  void lose(int node, const std::string& why, bool link = false);

  void tell(int node, const wire::node_mail& what);
  void tell_all(const wire::node_mail& what);

  /// Waits until all nodes have come so far, or one of them. Of several failures the
  /// one that is no loss is thrown.
  /// \throws node_failure, lasting_refusal, or ended_while_waiting if `interrupted` is
  /// set meanwhile
  void await(step how_far, const std::atomic<bool>* interrupted,
             std::optional<int> number = {});

  /// The identities of all nodes, in the order of their numbers. \pre known
  std::vector<node_identity> identities() const;

  /// What a node has said of itself. \pre prepared
  mail::prepared facts(int number) const {
    const std::lock_guard guard{lock_};
    return at(number).facts;
  }

  /// Ids of groups that a node has made. \pre connected
  std::vector<group_id> ids(int number) const {
    const std::lock_guard guard{lock_};
    return at(number).ids;
  }

  /// Finds what the clocks of nodes show that stand on other machines.
  void ask_for_clocks();

  /// The time on a node's steady clock at a time of this machine's.
  nanoseconds time_on(int node, nanoseconds here) const;

  /// By how much the clocks of any two may be wrong.
  nanoseconds clock_doubt() const;

  /// From now on a node that is lost is a failure of the run.
  void begin(notice_board& board);

  /// What the least patient says: a run has stalled if all of its devices have.
  stall_rule::verdict look() const;
  std::string at_work() const;

  /// The run is over: waits for the reports of those that are still there, as long as a
  /// failure takes, and closes all lines.
  std::vector<mail::node_report> end();

  /// Whether a node is.
  bool is_gone(int node) const;

  /// Whether a node was lost while the run was under way.
  bool has_lost() const;

private:
  struct node {
    std::string name;
    std::shared_ptr<control_line> line;
    nanoseconds heard = 0; // steady time
    step how_far = step::none;
    std::string fault; // empty: none
    bool gone = false;
    bool answered = false; // has sent a message
    bool is_loss = false;  // the fault, of a node that had answered
    bool lasts = false;    // likewise: no new start changes it
    silence silent;
    stall_rule::verdict verdict = stall_rule::verdict::fine;
    std::string at_work;
    node_identity identity{};
    mail::prepared facts;
    std::vector<group_id> ids;
    nanoseconds offset = 0;
    nanoseconds best_round_trip = -1;
    std::set<nanoseconds> probes; // of its clock, without an answer: when they went
    std::optional<mail::node_report> report;
  };

  /// Of a node that another one has lost.
  struct suspicion {
    int by;
    int of; // 0: the lead
    std::string why;
    nanoseconds patience; // of the watch
  };

  struct reading;

  void fail(node& one, const std::string& why, bool is_lost);
  static std::string loss_of(const node& one, const std::string& why);
  void suspect(int by, const mail::lost_node& what);
  void confirm_suspicion();
  void throw_fault() const;
  void keep_watch();
  bool is_node(int number) const { return number >= 1 && number <= std::ssize(nodes_); }
  node& at(int number) { return nodes_[static_cast<std::size_t>(number) - 1]; }
  const node& at(int number) const {
    return nodes_[static_cast<std::size_t>(number) - 1];
  }

  std::chrono::milliseconds timeout_;
  std::function<void(const std::string&)> waits_;
  mutable std::mutex lock_;
  std::condition_variable news_;
  std::vector<node> nodes_;
  std::optional<suspicion> suspected_;
  notice_board* board_ = nullptr; // while the run is under way
  bool has_lost_ = false;
  bool ending_ = false; // nodes have been told
  bool stopping_ = false;
  std::thread watch_;
};

} // namespace troupe
