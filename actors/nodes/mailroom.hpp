// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/control_lines.hpp"
#include "actors/nodes/landing.hpp"
#include "actors/nodes/layer_values.hpp"
#include "actors/nodes/mail_rules.hpp"
#include "actors/nodes/proxies.hpp"
#include "actors/run/ensemble.hpp"
#include "messaging/links/switchboard.hpp"
#include "messaging/wire/codec.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

namespace troupe {

/// The mail of a run between this process and the others: what proxies hear goes out,
/// and what comes in goes to the actors that are here. Mail with tensors travels on
/// tensor links, all other on control lines.
class mailroom : public frame_receiver {
public:
  /// Told when a node cannot be reached any more, on any thread.
  using loss = std::function<void(int node, const std::string& why)>;

  /// \param plan,lost outlive it \param nodes of each rank \param own number of this
  /// node \throws std::system_error if there is no thread
  mailroom(std::shared_ptr<const run_plan> plan, std::vector<int> nodes, int own,
           session_id of, loss lost);

  /// As close().
  ~mailroom() override;

  // The ways to another node.
  void add(int node, std::shared_ptr<control_line> line);
  void add(int node, std::unique_ptr<byte_stream> tensors);

  /// Makes proxies of all that are elsewhere.
  ensemble::distant_maker maker();

  /// From now on mail for actors that are here is taken. \pre gathered
  /// \param here outlives the mailroom, or close()
  void open(ensemble& here);

  /// GPUs of these groups exchange arrays themselves. Once, before open().
  void know(const known_groups& groups) { rules_.know(groups); }

  /// Takes a frame of a control line.
  void hear(int node, const control_frame& frame);

  /// Sends the values of a layer, before a run.
  void send_layer(int node, std::vector<unsigned char> text,
                  std::shared_ptr<const std::vector<float>> values);

  /// Where such values go that come in. \param to outlives close()
  void take_layers(layer_values& to) { layers_ = &to; }

  /// Bytes of tensors that have come and gone.
  std::int64_t moved() const { return tensors_.moved(); }

  /// No mail goes out or comes in any more.
  void close();

  /// Ends the actors of `here`, and closes. Mail that these actors have sent still goes
  /// out, the last losses among it; mail for them is dropped.
  void close_after_actors(ensemble& here);

  /// Frames of older generations, which were dropped.
  std::int64_t stale() const { return stale_ + tensors_.stale(); }

private:
  tl::expected<places, std::string> place(int peer, frame_kind what,
                                          std::span<const unsigned char> text,
                                          std::uint64_t payload_bytes) override;
  std::string deliver(int peer) override;
  void lost(int peer, const std::string& why) override { lost_(peer, why); }

  void carry(const wire::address& to, wire::actor_mail what);
  tl::expected<places, std::string> place_mail(int peer, wire::addressed_mail mail,
                                               std::uint64_t payload_bytes);
  memory_account& account_of(const wire::addressed_mail& mail);
  std::string post_here(wire::addressed_mail mail);
  int node_of(const wire::address& of) const;

  /// A frame whose payload is on its way.
  struct pending {
    frame_kind what = frame_kind::mail;
    wire::addressed_mail mail;
  };

  std::shared_ptr<const run_plan> plan_;
  mail_rules rules_;
  std::vector<int> nodes_; // of ranks
  int own_;
  session_id session_;
  loss lost_;
  std::mutex lock_;
  std::map<int, std::shared_ptr<control_line>> lines_;
  std::shared_mutex open_lock_; // of the next two: held while mail is posted
  std::atomic<ensemble*> here_ = nullptr;
  std::shared_ptr<directory> everybody_; // as of open()
  memory_account own_memory_;            // of mail for who leads
  landing landing_;                      // of the links' thread
  std::atomic<layer_values*> layers_ = nullptr;
  std::map<int, pending> pending_; // by peer
  std::atomic<std::int64_t> stale_ = 0;
  switchboard tensors_; // last: its thread uses the rest
};

} // namespace troupe
