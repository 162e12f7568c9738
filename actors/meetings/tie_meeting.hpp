// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "actors/plan/run_plan.hpp"
#include "kernels/pool.hpp"
#include "messaging/collective.hpp"
#include "models/network.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace troupe {

/// One end of a tied matrix: the embedding, or the head. Ranges [first, last) below are
/// indexes of the matrix's values.
enum class tied_end : std::uint8_t { embedding, head };

/// The meeting of optimizer shards with the two copies of a tied matrix (Press and
/// Wolf, "Using the Output Embedding to Improve Language Models", 2017). Each end sends
/// its summed gradient to the other end, and adds the received gradient. Both copies
/// therefore get the same update (Shoeybi et al., "Megatron-LM", 2019). With ZeRO an
/// optimizer shard holds only some values of a copy. The shard then exchanges each
/// value with the data replica that holds the value at the other end. The meeting has
/// one step in each update: `gradients_added`.
class tie_meeting : public meeting {
public:
  static constexpr int gradients_added = 0;

  /// True if a stage has an end of a tied matrix; false where nothing is computed.
  static bool is_at(const run_plan& plan, position where);

  /// The optimizer shards with which a shard exchanges gradients, each once. A shard
  /// with both ends also exchanges with itself. With ZeRO only shards with common
  /// values of the matrix exchange: the result may lack the shard itself, or be empty.
  /// \pre is_at(plan, where)
  static std::vector<position> others_of(const run_plan& plan, position where);

  /// \param plan outlives the meeting
  /// \param copies pool of the number and size that copies_of() returns
  /// \pre is_at(plan, where)
  tie_meeting(const run_plan& plan, position where, std::shared_ptr<pool> copies);

  /// The number and size of the buffers that the meeting's messages need.
  /// \pre is_at(plan, where)
  static payload_bound copies_of(const run_plan& plan, position where);

  /// Sets the summed gradients, one buffer for each of the stage's buckets. The buffers
  /// must outlive the update.
  /// \throws std::logic_error if the pool of copies has no free buffer
  void expect(std::vector<buffer> gradients);

  // Work of an update, on the rank's stream.

  /// Copies the gradients that other shards receive into the buffers of messages.
  /// \pre expect() has been called in this update, and begin() has not
  void copy(stream& stream);

  /// Adds the received gradients to this shard's own. Later calls in the update do
  /// nothing.
  /// \pre is_done(gradients_added)
  void add(stream& stream);

  meeting_messages begin(int index) override;
  meeting_messages receive(mail::meeting_message received) override;
  bool is_done(int) const override { return started_ && missing_.empty(); }
  std::optional<missing_peer> waits_for() const override;
  void yield_sums(const sum_requester& request) override { request_ = request; }

  /// The next begin() belongs to the next update.
  /// \pre this update's work has ended
  void next_update();

private:
  /// This shard's values of one end of the tied matrix, and the ranges to exchange with
  /// each shard of the other end.
  struct end_here {
    tied_end which;
    std::size_t bucket;
    std::int64_t first;          // index of the shard's first value
    std::int64_t last;           // one past the shard's last value
    std::int64_t place_of_first; // offset in the bucket's gradients
    struct exchange {
      position peer; // the shard at the other end
      std::int64_t first, last;
    };
    std::vector<exchange> exchanges;
  };

  /// The values for another shard.
  struct outgoing_part {
    tied_end from;
    position to;
    std::int64_t first, last;
    buffer payload;
  };

  static std::vector<end_here> ends_of(const run_plan& plan, position where);
  float* gradient_at(tied_end which, std::int64_t value);
  void keep(mail::tied_part part);
  void end_sum(int number);

  const run_plan* plan_;
  position where_;
  std::vector<end_here> ends_;
  std::shared_ptr<pool> copies_;
  std::vector<buffer> gradients_;
  std::vector<outgoing_part> outgoing_parts_; // not sent yet
  std::vector<mail::tied_part> early_;        // of updates that have not begun here
  std::vector<mail::tied_part> parts_;        // of this update
  bool added_ = false;                        // parts_ have been added
  sum_requester request_;                     // empty: sums take no time
  // sums under way, by number: the sender of the part
  std::map<int, position> sums_;
  int asked_ = 0;   // number of sums requested
  int updates_ = 0; // number of updates begun
  bool started_ = false;
  std::vector<position> missing_; // awaited shards; twice if a shard has both ends
};

} // namespace troupe
