#pragma once

#include "schedules/action.hpp"
#include "schedules/shape.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

// What papers say of their schedules, in closed form, written a second time. A proof
// that asked the functions on which a run goes would hear the run's own opinion; so
// nothing of schedules/ but op and shape is included here, which a test sees to.
//
// S stages, of which s counts from 0; M microbatches a batch, T batches. Microbatch n
// counts from 0 over the run of one data replica; a batch's are dealt out to Chimera's
// two directions in halves. An update covers K microbatches of its stage, the last one
// what is left.

namespace troupe::published {

/// A schedule by its name, and by the parameters that its paper gives it.
struct rule {
  std::string name;
  int update_every = 1;         ///< Of PipeDream: K.
  bool vertical_sync = false;   ///< Of PipeDream.
  int max_active_keys = 4;      ///< Of AMPNet: microbatches in flight at stage 0.
  int min_update_frequency = 8; ///< Of AMPNet: K.

  bool operator==(const rule&) const = default;
};

/// The rule that a user named, with the parameters as typed; absent where none is
/// published. Options of optimizers among the parameters are ignored.
std::optional<rule> find(const std::string& name,
                         const std::map<std::string, std::string>& parameters);

/// Whether nothing is in flight when an update is made, so that there is one version.
bool flushes(const rule& by);

/// Directions in which microbatches run through the stages.
int directions(const rule& by);

/// The stage of a direction that a rank hosts: Chimera's second one runs from the last
/// rank to the first.
int stage_at(const shape& dims, int rank, int direction);

/// K, for one direction of a stage; and how many updates a stage makes in the run.
int minibatch(const rule& by, const shape& dims);
int updates(const rule& by, const shape& dims);

/// Microbatches that update u, from 0, covers of one direction.
int covered(const rule& by, const shape& dims, int u);

/// The last that it covers of all; absent for AMPNet, where they come as they come.
std::optional<int> last_covered(const rule& by, const shape& dims, int u);

/// The logical time of microbatch n's forward or backward: a rank runs what it has in
/// the order of these. Absent for AMPNet, which has a rule instead (published_order).
std::optional<std::int64_t> slot(const rule& by, const shape& dims, op what, int s,
                                 int n);

/// The version that the forward and the backward of microbatch n read: how many updates
/// have made it. Absent where they read the newest, whatever that is.
std::optional<int> version_read(const rule& by, const shape& dims, int s, int n);

/// Whether the run is long enough to fill, so that stages keep as many versions as they
/// ever would; a shorter one may keep fewer.
bool is_steady(const rule& by, const shape& dims);

/// Versions alive at once on a stage: those that a microbatch in flight reads or one to
/// come will read, and the newest.
int versions_kept(const rule& by, const shape& dims, int s);

/// How many updates an update that covers microbatch n starts behind what its forward
/// read. Absent for AMPNet, which has a bound alone, as long as no microbatch overtakes
/// another.
std::optional<int> staleness(const rule& by, const shape& dims, int s, int n);
int max_staleness(const rule& by, const shape& dims, int s);

/// Microbatches that a rank holds at once, from the start of their forward to the end
/// of their backward. Of AMPNet the most that it may hold.
int activations_held(const rule& by, const shape& dims, int rank);

/// What a batch takes where every forward and every backward takes as long as the
/// others, and updates and messages take nothing.
struct batch_time {
  std::int64_t makespan;
  std::int64_t idle; ///< Of every rank.

  bool operator==(const batch_time&) const = default;
};

/// Absent where no paper has a formula: for schedules that do not flush. Chimera has
/// one where M is a multiple of S, and a backward takes as long as a forward, or twice.
std::optional<batch_time> time_of_batch(const rule& by, const shape& dims,
                                        std::int64_t forward, std::int64_t backward);

} // namespace troupe::published
