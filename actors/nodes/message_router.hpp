// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/control_lines.hpp"
#include "actors/nodes/layer_values.hpp"
#include "actors/nodes/message_validation.hpp"
#include "actors/nodes/proxies.hpp"
#include "actors/nodes/receive_buffers.hpp"
#include "actors/run/local_run.hpp"
#include "messaging/links/tensor_links.hpp"
#include "messaging/wire/codec.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

// Connects the actors of this process with the actors of other processes of a run.

namespace troupe {

/// Routes messages between this process and other processes of a run: encodes and sends
/// the messages that proxies receive; decodes, validates and delivers incoming
/// messages. Messages that may have tensors are sent on tensor links, all others on
/// control lines.
class message_router : public frame_receiver {
public:
  /// Called on any thread, with the reason, when a tensor link to a node has ended, or
  /// when a node has sent an invalid message.
  using loss = std::function<void(int node, const std::string& why)>;

  /// \param nodes the node of each rank
  /// \param local_node number of this node
  /// \param on_loss objects to which the function refers outlive the calls of close()
  /// and handle()
  /// \pre plan->work
  /// \throws no_thread if no thread can be started
  message_router(std::shared_ptr<const run_plan> plan, std::vector<int> nodes,
                 int local_node, session_id session, loss on_loss);

  /// Calls `close()`.
  ~message_router() override;

  // Both functions add a connection to another node: a control line, or the stream of a
  // tensor link. Any thread may call. A second control line replaces the first. A
  // second tensor link is closed while the first one lasts.
  void add(int node, std::shared_ptr<control_line> line);
  void add(int node, std::unique_ptr<byte_stream> tensors);

  /// Returns a function that makes proxies of all actors in other processes. This
  /// object outlives the function and the proxies.
  local_run::distant_maker maker();

  /// Starts the delivery of messages to the actors of `local`.
  /// \pre `local` has gathered the actors
  /// \param local outlives this object, unless close() is called first
  void open(local_run& local);

  /// Sets the groups whose GPUs exchange arrays directly. Called at most once, before
  /// open(). Without the call a message that stands for such an exchange is invalid.
  void set_groups(const known_groups& groups) { rules_.set_groups(groups); }

  /// Handles a frame of a control line, on the line's thread. Drops a frame of an older
  /// generation. Reports an invalid frame, or one of a later generation, as loss of the
  /// node. Before open() and after close(), drops a valid frame.
  /// \pre the frame is of kind control_frame::kind::actors
  void handle(int node, const control_frame& frame);

  /// Sends the values of a layer to a node, before a run. Drops the values if there is
  /// no tensor link to the node.
  /// \param text the values' key, by to_text()
  void send_layer(int node, std::vector<unsigned char> text,
                  std::shared_ptr<const std::vector<float>> values);

  /// Sets the destination of layer values that arrive from the leader. Without the call
  /// such values are reported as loss of the leader.
  /// \param to outlives the call of close()
  void receive_layers(layer_values& to) { layers_ = &to; }

  /// Bytes that all tensor links have received and sent so far.
  std::int64_t moved() const { return tensors_.moved(); }

  /// Stops all sending and delivery. Tensors not sent yet are dropped.
  void close();

  /// Ends the actors of `local`, then calls close(). Messages that these actors have
  /// sent by control lines, such as the last losses for the leader, still go out.
  /// Tensors not sent yet, and messages for these actors, are dropped.
  void close_after_actors(local_run& local);

  /// Number of received frames of older generations, which were dropped. Frames on
  /// tensor links count only after the end of their link.
  std::int64_t stale() const { return stale_ + tensors_.stale(); }

private:
  tl::expected<areas, std::string> place(int peer, frame_kind kind,
                                         std::span<const unsigned char> text,
                                         std::uint64_t payload_bytes) override;
  std::string deliver(int peer) override;
  void lost(int peer, const std::string& why) override { on_loss_(peer, why); }

  void send_message(const wire::address& to, wire::actor_message message);
  tl::expected<areas, std::string>
  place_message(int peer, wire::addressed_message message, std::uint64_t payload_bytes);
  memory_account& account_of(const wire::addressed_message& message);
  std::string deliver_locally(wire::addressed_message addressed);
  int node_of(const wire::address& receiver) const;

  /// A frame whose payload has not arrived yet.
  struct pending {
    frame_kind kind = frame_kind::message;
    wire::addressed_message message;
  };

  std::shared_ptr<const run_plan> plan_;
  message_validation rules_;
  std::vector<int> nodes_; // of ranks
  int local_node_;
  session_id session_;
  loss on_loss_;
  std::mutex lock_;
  std::map<int, std::shared_ptr<control_line>> lines_;
  std::shared_mutex open_lock_; // guards local_run_ and handles_; shared while messages
                                // are delivered
  std::atomic<local_run*> local_run_ = nullptr;
  std::shared_ptr<actor_handles> handles_; // set by open()
  memory_account leader_memory_;           // of messages for the leader
  receive_buffers receive_buffers_;        // for the links' thread
  std::atomic<layer_values*> layers_ = nullptr;
  std::map<int, pending> pending_; // by peer
  std::atomic<std::int64_t> stale_ = 0;
  tensor_links tensors_; // last: the member's thread uses the members above
};

} // namespace troupe
