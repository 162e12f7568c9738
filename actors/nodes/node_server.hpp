// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/node_order.hpp"
#include "actors/nodes/player.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace troupe {

/// A node: offers this machine to runs that others lead, one after another.
class node_server {
public:
  struct settings {
    std::string version; ///< Of troupe; leads have the same.
    int queue = 8;       ///< Runs that may wait while one is played.
    acceptor::limits guests = {};
    std::size_t visitors = 16; ///< Control lines that have no part in a run.
    std::chrono::nanoseconds visitor_silence = std::chrono::seconds{30}; ///< At most.
  };

  /// \param means outlives it \param make makes streams of those who connect
  node_server(listening_sockets at, acceptor::stream_maker make,
              const player_means& means, settings how);
  ~node_server();
  node_server(const node_server&) = delete;
  node_server& operator=(const node_server&) = delete;

  std::uint16_t port() const { return acceptor_->port(); }

  /// When a node ends.
  struct endings {
    const std::atomic<bool>& at_once;   ///< A run under way ends too.
    const std::atomic<bool>& after_run; ///< A run under way is played to its end.
  };

  /// Plays runs on the caller's thread until one of the two is set. A leader that gets
  /// the same announcement ends its run itself, with everything saved.
  /// \param told of what it does, a sentence each
  void serve(const endings& when, const std::function<void(const std::string&)>& told);

  void serve(const std::atomic<bool>& stop,
             const std::function<void(const std::string&)>& told) {
    serve({stop, stop}, told);
  }

private:
  /// Who has a control line and plays no part in a run yet.
  struct visitor {
    std::shared_ptr<control_line> line;
    std::shared_ptr<player> plays = {};       // null: not yet
    nanoseconds heard = wall_clock::steady(); // last
    nanoseconds since = wall_clock::steady();
    std::int64_t received = 0; // bytes, without a run
    int questions = 0;
    bool is_refused = false; // the node is full, and has said so
  };
  struct job {
    int visitor;
    mail::prepare begins;
  };

  void welcome(const greeting& guest, std::unique_ptr<byte_stream> stream);
  void receive(const greeting& guest, std::unique_ptr<byte_stream> stream);
  void hear(int visitor, control_frame frame);
  void take(int visitor, mail::prepare begins);
  void answer(int visitor);
  void leave(int visitor, const std::string& why = {});
  void watch_visitors();
  void dismiss_idlers();
  mail::node_status status() const;

  const node_identity identity_ = new_identity();

  const player_means& means_;
  settings how_;
  mutable std::mutex lock_;
  std::condition_variable news_;
  int next_visitor_ = 0;
  std::map<int, visitor> visitors_;
  std::deque<job> jobs_;
  std::shared_ptr<player> current_;
  std::array<std::uint64_t, 2> session_{}; // of the run that is played, or was last
  bool ends_ = false;
  std::thread watch_;                  // of visitors
  std::unique_ptr<acceptor> acceptor_; // last: its thread uses the rest
};

} // namespace troupe
