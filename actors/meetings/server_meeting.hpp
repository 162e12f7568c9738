// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/meetings/meeting.hpp"
#include "actors/plan/run_plan.hpp"

#include <functional>
#include <vector>

namespace troupe {

/// An optimizer shard and the parameter servers of its stage: it pushes the gradients
/// of its data replica to all of them, and each answers when it has written its share
/// of the next version. There is one occasion an update.
class server_meeting : public meeting {
public:
  static constexpr int answered = 0;

  /// \param plan outlives it \pre plan has servers
  server_meeting(const run_plan& plan, position where);

  /// Makes what goes to all servers, when it goes.
  using push_maker = std::function<mail::push()>;
  void expect(push_maker what) { push_ = std::move(what); }

  letters begin(int occasion) override;
  letters take(mail::letter what) override;
  bool over(int) const override { return awaited_.empty(); }
  std::optional<absence> waits_for() const override;

private:
  position server(int share) const;

  const run_plan* plan_;
  position where_;
  push_maker push_;
  std::vector<int> awaited_; // servers
};

} // namespace troupe
