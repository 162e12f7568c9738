#pragma once

#include "actors/mail/messages.hpp"
#include "actors/meetings/bucket_meeting.hpp"
#include "actors/updates/shared_parameters.hpp"
#include "models/optimizer.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// What an optimizer shard computes with; all are null where it does not, and pools
/// where no such copies travel.
struct optimizer_memory {
  std::shared_ptr<optimizer> state; ///< Null too where parameter servers have it.
  /// Of all data replicas, where each updates them by itself.
  std::shared_ptr<shared_parameters> parameters = {};
  std::shared_ptr<exchange_pools> sums;
  std::shared_ptr<exchange_pools> gathers;
};

/// The update of one stage and its replicas: gathers their gradients, adds them in
/// replica order and then, by an exchange, those of all data replicas. It writes the
/// next version for the first replica, on whose rank it stands; the others copy it;
/// where data replicas share the update out, it writes its share and gathers theirs.
/// Where an update is of one data replica alone, it pushes the sum to parameter
/// servers, who write the next version, or updates what all of them share. Where
/// nothing is computed it only keeps count.
class optimizer_core {
public:
  /// \param where any replica of the stage
  optimizer_core(const run_plan& plan, position where, optimizer_memory memory);

  /// A replica's gradients of a bucket are complete. Returns what other data replicas
  /// are to be sent.
  std::vector<collective_message> take(const mail::bucket_ready& part);
  std::vector<collective_message> take(const collective_message& message);

  /// Whether a message is of the sum of gradients, not of the gathering of parameters.
  bool sums(const collective_message& part) const { return sum_ && sum_->owns(part); }

  /// The data replica that a message is for.
  int receiver_of(const collective_message& part) const {
    return (sums(part) ? sum_ : gather_)->receiver_of(part);
  }

  /// Whether all that others have to give to the sum of gradients is here.
  bool complete() const;

  /// Takes a replica's part.
  void take(const mail::update_request& part);

  /// Whether a norm that others have parts of must be known before the update.
  bool needs_norm() const;

  /// Whether parameter servers make the update.
  bool has_servers() const { return has_servers_; }

  /// Whether measure() precedes the update: it needs a norm, or has servers.
  bool measures() const { return needs_norm() || has_servers_; }

  /// Adds the replicas, and squares if there is clipping. The result is in norm().
  work measure();
  mail::norm_part norm() const;

  /// What clipping by the network's norm multiplies this update's gradients with.
  void clip_by(double factor) { factor_ = factor; }

  /// What goes to all servers of the stage, and its bytes that one of them applies; and
  /// the answer of one.
  mail::push begin_push();
  std::int64_t push_bytes(std::size_t server) const { return push_bytes_[server]; }
  void take(const mail::pulled& answer) { std::erase(servers_, answer.server); }

  /// The servers that have not answered.
  const std::vector<int>& awaited_servers() const { return servers_; }

  /// Whether a replica's apply() must wait for shares of the new version.
  bool lacks_shares() const {
    return !servers_.empty() || (gather_ && made_ && !gather_->done());
  }

  /// The arithmetic of the update for one replica. The first one makes the new version,
  /// before the others copy it; where it was shared out, the first has nothing left to
  /// do the second time.
  work apply(int replica);

  /// Bytes of a new version, on its way to another replica.
  std::int64_t version_bytes() const { return version_bytes_; }

  /// Whether begin_gather() is still to come for this update.
  bool is_to_gather() const { return gather_ && !gathering_; }

  /// The first apply() has ended: begins to gather the shares. Returns what is to be
  /// sent; empty if there are none, or they are on their way already.
  std::vector<collective_message> begin_gather();

  /// A replica has its new version; with the last one the update is over.
  void applied();

  /// Whom it waits for, in words; empty: nobody.
  std::string missing() const;

  // For the first of those whose gradients the norm covers: gathers their parts.
  // Returns the factor when all are there.
  std::optional<double> gather(const mail::norm_part& part);

private:
  void add_replicas();
  bool has_all_parts() const;
  std::vector<double> squares(bool shards_only) const;

  position where_;
  bucket_share share_;
  bucket_extent has_gradients_;
  bool computes_;
  bool has_servers_;
  double clip_;
  clip_scope scope_;
  bool tells_all_; ///< Of a norm: not only what its like do not have too.
  std::shared_ptr<optimizer> state_;
  std::shared_ptr<shared_parameters> shared_;
  std::vector<parameter_part> clipped_; // if there is clipping: what it measures
  std::optional<bucket_exchange> sum_, gather_; // among data replicas
  bool gathering_ = false;
  /// The gradients of one bucket that replicas have completed.
  struct ready_bucket {
    int count = 0;
    std::vector<buffer> of; // a replica each
  };
  std::vector<ready_bucket> ready_;
  std::size_t complete_buckets_ = 0;                 // of all replicas
  std::vector<std::int64_t> gradients_, parameters_; // values of each bucket here
  double operations_ = 0;
  std::vector<std::optional<mail::update_request>> parts_; // a replica each
  bool added_ = false;
  bool made_ = false; // the new version, by the first replica
  int applied_ = 0;
  std::vector<int> servers_;             // that have not answered
  std::vector<std::int64_t> push_bytes_; // a server each
  std::int64_t version_bytes_ = 0;
  double factor_ = 1;
  std::vector<double> squares_;
  std::vector<position> norm_group_;
  std::vector<std::optional<mail::norm_part>> gathered_; // of each in the group
};

} // namespace troupe
