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

/// One end of a tied matrix: the embedding, or the head. Ranges count the matrix's
/// values.
enum class tied_end : std::uint8_t { embedding, head };

/// Optimizer shards that hold the two copies of a tied matrix (Press and Wolf, "Using
/// the Output Embedding to Improve Language Models", 2017). Each end gives the other
/// its summed gradient, and both add them, so that both copies take the same step
/// (Shoeybi et al., "Megatron-LM", 2019). Where data replicas share an update out, each
/// sends the values of its share to the replicas whose shares hold them at the other
/// end. There is one occasion an update.
class tie_meeting : public meeting {
public:
  static constexpr int gradients_added = 0;

  /// Whether a stage has an end of a tied matrix.
  static bool is_at(const run_plan& plan, position where);

  /// The optimizer shards that a shard exchanges gradients with; itself among them if
  /// it has both ends.
  static std::vector<position> others_of(const run_plan& plan, position where);

  /// \param plan outlives it \param copies as copies_of says \pre is_at(plan, where)
  tie_meeting(const run_plan& plan, position where, std::shared_ptr<pool> copies);

  /// The buffers that its messages need.
  static payload_bound copies_of(const run_plan& plan, position where);

  /// The summed gradients of the stage's buckets; they last as long as the update.
  void expect(std::vector<buffer> gradients);

  // Work of an update, on its rank's stream.

  /// Copies what the others are given. \pre expect()
  void copy(stream& on);

  /// Adds what they have given, the first time that it is called. \pre
  /// over(gradients_added)
  void add(stream& on);

  letters begin(int occasion) override;
  letters take(mail::letter what) override;
  bool over(int) const override { return begun_ && missing_.empty(); }
  std::optional<absence> waits_for() const override;
  void yield_sums(const sum_asker& ask) override { ask_ = ask; }

  /// The next begin() belongs to the next update. \pre this one's work has ended
  void next_update();

private:
  /// What this shard has of one end, and whom it gives how much of that.
  struct end_here {
    tied_end which;
    std::size_t bucket;
    std::int64_t first;          // of its values,
    std::int64_t last;           // behind the last
    std::int64_t place_of_first; // in its array of the bucket's gradients
    struct exchange {
      position with; // at the other end
      std::int64_t first, last;
    };
    std::vector<exchange> exchanges;
  };

  /// What another is given.
  struct gift {
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
  std::vector<gift> gifts_;            // that have not been sent
  std::vector<mail::tied_part> early_; // of updates that have not begun here
  std::vector<mail::tied_part> parts_; // of this update
  bool added_ = false;                 // these
  sum_asker ask_;                      // empty: sums take no time
  std::map<int, position> sums_;       // that take theirs, by number: whose part
  int asked_ = 0;                      // sums
  int updates_ = 0;                    // begun
  bool begun_ = false;
  std::vector<position>
    missing_; // who has not given for this update; twice, if both ends
};

} // namespace troupe
