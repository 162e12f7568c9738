#pragma once

#include "actors/pipeline/stage_meetings.hpp"
#include "actors/pipeline/stage_port.hpp"
#include "actors/pipeline/stage_work.hpp"
#include "messaging/mail/control.hpp"

#include <memory>
#include <utility>

namespace troupe {

/// The updates of a stage, as the stage sees them: which backwards each covers, what
/// the optimizer shard is given for one, and which snapshots and versions are reported.
class stage_updates {
public:
  /// \param plan,port,work,meetings,books outlive it
  stage_updates(const run_plan& plan, position where, stage_port& port,
                stage_work& work, stage_meetings& meetings, stage_ledger& books);

  /// A backward begins that sums: whether its gradients are the first of an update, and
  /// the last.
  struct place_in_sum {
    bool first = false;
    bool last = false;
  };
  place_in_sum begin_backward();

  /// B or W of a microbatch has ended.
  void end_backward(int microbatch);

  /// Gives the optimizer shard all that an update takes. It goes on from there.
  void begin(const action& a);

  /// The version is there. Returns the update as it was measured.
  measured_action end(const mail::updated& last);

  bool under_way() const { return under_way_; }

  /// Whether all backwards of the run have ended.
  bool has_all_gradients() const;

  /// Reports a copy of the parameters if an evaluation wants those that there are now.
  void report_snapshot_if_due();

  /// What the stage has in the end. \throws std::logic_error if an update was not made
  mail::collected collect() const;

private:
  void tell_all_buckets(const std::vector<buffer>& gradients);
  mail::version_made last_version() const;

  const run_plan& plan_;
  position where_;
  stage_port& port_;
  stage_work& work_;
  stage_meetings& meetings_;
  stage_ledger& books_;
  int sums_begun_ = 0; // backwards, since the last update
  int backwards_begun_ = 0;
  std::int64_t samples_summed_ = 0;  // likewise
  std::int64_t samples_updated_ = 0; // in all updates
  int backwards_ended_ = 0;
  bool under_way_ = false;
  int snapshot_due_ = 0;     // batches; 0: none is due
  measured_action update_{}; // that is under way, without its times
};

} // namespace troupe
