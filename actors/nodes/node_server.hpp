#pragma once

#include "actors/nodes/player.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace troupe {

/// A node: offers this machine to runs that others lead, one after another.
class node_server {
public:
  struct settings {
    std::string version; ///< Of troupe; leads have the same.
    int queue = 8;       ///< Runs that may wait while one is played.
    acceptor::limits guests = {};
  };

  /// \param means outlives it \param make makes streams of those who connect
  node_server(listener_socket at, acceptor::stream_maker make,
              const player_means& means, settings how);
  ~node_server();
  node_server(const node_server&) = delete;
  node_server& operator=(const node_server&) = delete;

  std::uint16_t port() const { return acceptor_->port(); }

  /// Plays runs on the caller's thread until `stop` is set; one under way ends then.
  /// \param told of what it does, a sentence each
  void serve(const std::atomic<bool>& stop,
             const std::function<void(const std::string&)>& told);

private:
  /// Who has a control line and plays no part in a run yet.
  struct visitor {
    std::shared_ptr<control_line> line;
    std::shared_ptr<player> plays; // null: not yet
    nanoseconds since = wall_clock::steady();
    int questions = 0;
  };
  struct job {
    int visitor;
    mail::prepare begins;
  };

  void welcome(const greeting& guest, std::unique_ptr<byte_stream> stream);
  void receive(std::unique_ptr<byte_stream> stream);
  void hear(int visitor, control_frame frame);
  void take(int visitor, mail::prepare begins);
  void answer(int visitor);
  void leave(int visitor);
  void dismiss_idlers();
  mail::node_status status() const;

  const player_means& means_;
  settings how_;
  mutable std::mutex lock_;
  std::condition_variable news_;
  int next_visitor_ = 0;
  std::map<int, visitor> visitors_;
  std::deque<job> jobs_;
  std::shared_ptr<player> current_;
  std::unique_ptr<acceptor> acceptor_; // last: its thread uses the rest
};

} // namespace troupe
