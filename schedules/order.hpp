// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "schedules/schedule.hpp"
#include "schedules/waiting.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace troupe {

/// What may begin now.
enum class may_begin : std::uint8_t {
  anything,
  updates, ///< Nothing else.
  passes,  ///< No update.
};

/// What a rank runs next: a cursor in its program, or a local rule.
class order {
public:
  virtual ~order() = default;

  /// Takes the action to grant now out of `arrived`; absent if none may run yet.
  virtual std::optional<action> next(waiting& arrived,
                                     may_begin what = may_begin::anything) = 0;

  /// Hears that a granted action has ended.
  virtual void ended(const action& a) = 0;

  /// Whether everything has been granted and has ended.
  virtual bool finished() = 0;

  /// The action that must arrive before anything else can be granted, if there is one.
  /// After next() has given the first of a pair, that is the second.
  virtual std::optional<action> awaited() = 0;

  /// Begins no further update from now on; a local rule lets no further microbatch in.
  /// Returns how many have begun, of the stage that has begun most; or have come in.
  virtual int freeze() = 0;

  /// Makes the run end after so many updates of each stage; of a local rule, when so
  /// many microbatches have been through. \pre at least what freeze() returned
  virtual void stop_after(int count) = 0;

  /// Begins nothing more once each stage has been updated with so many batches of the
  /// run, until it is told of a later one. A local rule lets no further microbatch in.
  /// \pre they are whole updates
  virtual void pause_after(int batches) = 0;

  /// Whether all of that has ended, and there is more behind it.
  virtual bool paused() = 0;
};

/// The order of `rank` under `sch`.
std::unique_ptr<order> make_order(const schedule& sch, const shape& dims, int rank);

} // namespace troupe
