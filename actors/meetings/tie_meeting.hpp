// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "kernels/pool.hpp"
#include "messaging/position.hpp"
#include "plan/tied_ends.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace troupe {

struct run_plan;

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

  /// \param plan outlives the meeting
  /// \param copies pool of the number and size that tied_copies() returns
  /// \pre has_tied_end(plan, where)
  tie_meeting(const run_plan& plan, position where, std::shared_ptr<pool> copies);

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
  /// The values for another shard.
  struct outgoing_part {
    tied_end from;
    position to;
    std::int64_t first, last;
    buffer payload;
  };

  float* gradient_at(tied_end which, std::int64_t value);
  void keep(mail::tied_part part);
  void end_sum(int number);

  const run_plan* plan_;
  position where_;
  std::vector<tied_values> ends_;
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
