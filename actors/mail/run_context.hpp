// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/send.hpp"
#include "kernels/device.hpp"
#include "kernels/virtual_clock.hpp"
#include "messaging/interconnect.hpp"

#include <memory>

namespace troupe {

struct run_plan;

/// The context that the actors of a run share besides messages. The objects of the
/// pointers outlive all actors.
struct run_context {
  std::shared_ptr<const run_plan> plan; ///< Null in a trial of a collective.
  message_meter* meter;                 ///< Not null.
  virtual_clock* clock;                 ///< Null in real time.
  interconnect* links;                  ///< Network between ranks; null in real time.
};

} // namespace troupe
