// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/node_order.hpp"
#include "actors/nodes/worker.hpp"

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

// The server of a node: accepts connections of leaders, and executes one run after
// another.

namespace troupe {

/// A node: offers this machine to runs that other processes lead, one run after
/// another. Runs are executed on the thread that calls serve(). Connections are
/// accepted on a thread of the node; another thread closes silent clients.
class node_server {
public:
  struct settings {
    std::string version; ///< Version of troupe; leaders must have the same version.
    int queue = 8;       ///< Most runs that may wait while another run is executed.
    acceptor::limits connection_limits = {};
    /// Most control lines of clients. The current or last run's leader may exceed this
    /// number by 4 lines. As many lines again may be open to clients that still read
    /// the node's refusal.
    std::size_t clients = 16;
    /// Longest silence of a client without a part in a run; then the node closes the
    /// line. A refused client's longest silence is 1 s.
    std::chrono::nanoseconds client_silence = std::chrono::seconds{30};
  };

  /// \param services outlives this object; `services.connections` is not null
  /// \param make makes streams of incoming connections, on the thread that accepts
  /// \throws no_thread
  node_server(listening_sockets sockets, acceptor::stream_maker make,
              const worker_services& services, settings options);
  ~node_server();
  node_server(const node_server&) = delete;
  node_server& operator=(const node_server&) = delete;

  std::uint16_t port() const { return acceptor_->port(); }

  /// Conditions that end a node. The flags outlive the call of serve().
  struct endings {
    /// If set, the node ends without waiting for the current run, which ends too.
    const std::atomic<bool>& at_once;
    /// If set, the node ends after the current run.
    const std::atomic<bool>& after_run;
  };

  /// Serves runs on the caller's thread until one of the two flags is set. `after_run`
  /// is for a signal that the leader receives too: the leader then ends the run, with
  /// all results saved.
  /// \param report called on this thread, with a sentence about each start and end of a
  /// run
  void serve(const endings& when,
             const std::function<void(const std::string&)>& report);

  /// Serves runs until `stop` is set, which also ends the current run.
  void serve(const std::atomic<bool>& stop,
             const std::function<void(const std::string&)>& report) {
    serve({stop, stop}, report);
  }

private:
  /// A client with a control line.
  struct client {
    std::shared_ptr<control_line> line;
    std::shared_ptr<worker> running = {};            // null: no part in a run now
    nanoseconds last_message = wall_clock::steady(); // steady time
    nanoseconds since = wall_clock::steady();        // without a part in a run
    std::int64_t received = 0; // bytes received while without a run
    int questions = 0;
    bool is_refused = false; // the node is full and has said so
  };
  struct job {
    int client;
    mail::prepare request;
  };

  void accept(const greeting& hello, std::unique_ptr<byte_stream> stream);
  void receive(const greeting& hello, std::unique_ptr<byte_stream> stream);
  void handle(int number, control_frame frame);
  void enqueue(int number, mail::prepare request);
  void answer(int number);
  void leave(int number, const std::string& why = {});
  void watch_clients();
  void close_idle_clients();
  mail::node_status status() const;

  const node_identity identity_ = new_identity();

  const worker_services& services_;
  settings options_;
  mutable std::mutex lock_;
  std::condition_variable news_;
  int next_client_ = 0;
  std::map<int, client> clients_;
  std::deque<job> jobs_;
  std::shared_ptr<worker> current_;
  std::array<std::uint64_t, 2> session_{}; // of the current or the last run
  bool ends_ = false;
  std::thread watch_;                  // of clients
  std::unique_ptr<acceptor> acceptor_; // last: the member's thread uses the members
                                       // above
};

} // namespace troupe
