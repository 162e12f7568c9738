// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/virtual_clock.hpp"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace troupe {

/// What a message takes on its way between two ports.
struct link_cost {
  nanoseconds latency = 0;     ///< From the first byte's departure to its arrival.
  double bytes_per_second = 0; ///< 0: bytes take no time.

  /// How long `bytes` occupy a port or a link of this bandwidth.
  nanoseconds occupied(double bytes) const;

  bool operator==(const link_cost&) const = default;
};

/// Which ranks stand on one machine, and the links between them.
struct machine_model {
  int ranks_each = 0;     ///< Ranks 0 to n-1 on machine 0, and so on; 0: all on one.
  link_cost inside = {};  ///< Between ranks of one machine.
  link_cost between = {}; ///< Between machines.
  /// Between these two machines instead; the lower number first.
  std::map<std::pair<int, int>, link_cost> pairs = {};

  int machine_of(int rank) const { return ranks_each > 0 ? rank / ranks_each : 0; }
  const link_cost& between_machines(int a, int b) const;
  const link_cost& between_ranks(int a, int b) const;

  /// What is slowest in all of it: no message has a larger latency or is slower.
  link_cost slowest() const;
};

/// The interconnect of a run in virtual time. A rank has one full-duplex port, which
/// all its messages share; so has a machine, for what its ranks send to other machines.
///
/// Messages cut through: one occupies the sender's port for bytes / bandwidth, and the
/// receiver's for as long from the arrival of its first byte. A port serves messages in
/// the order of their first bytes; ties go to the lowest sending rank. Latency occupies
/// no port. One message between idle ports takes latency + bytes / bandwidth.
///
///   rank 0 ─┐                                ┌─ rank 2
///           ├─ port of ── link ── port of ───┤
///   rank 1 ─┘  machine 0          machine 1  └─ rank 3
///
/// Between machines a message occupies the ports of both ranks at the bandwidth inside
/// a machine, the ports of both machines at that of their fastest link, and the link at
/// its own; each from the arrival of the first byte there.
class interconnect {
public:
  /// \param clock outlives the interconnect
  interconnect(virtual_clock& clock, machine_model how, int ranks);
  interconnect(const interconnect&) = delete;
  interconnect& operator=(const interconnect&) = delete;

  /// Whether no message takes any time.
  bool is_free() const { return is_free_; }

  /// Sends a message now; `arrived` is called when its last byte has arrived.
  /// Messages between the same two ranks arrive in the order in which they were sent.
  void send(int from, int to, double bytes, virtual_clock::event arrived);

  /// Forgets all messages on their way. \pre the clock has dropped its events
  void clear();

private:
  /// One direction of a port, or of a link: when it has served all so far.
  struct lane {
    nanoseconds free_at = 0;

    /// Serves a message whose first byte comes at `first`. Returns when it begins.
    nanoseconds serve(nanoseconds first, nanoseconds occupied);
  };

  struct machine {
    link_cost port; ///< No latency.
    lane out, in;
  };

  /// Where the first byte of a message arrives next.
  enum class place : std::uint8_t { machine_out, machine_in, rank_in };

  /// A message on its way.
  struct passage {
    int from;
    int to;
    double bytes;
    nanoseconds last_byte; ///< When it arrives there, if not later.
    place next;
    virtual_clock::event arrived;
  };

  nanoseconds inside(double bytes) const { return how_.inside.occupied(bytes); }
  machine& machine_of(int rank) {
    return machines_[static_cast<std::size_t>(how_.machine_of(rank))];
  }
  void go_to(place next, std::size_t message, nanoseconds first_byte);
  void serve_arrivals();
  void serve(std::size_t message);
  void leave_machine(std::size_t message);
  void enter_machine(std::size_t message);
  void enter_rank(std::size_t message);
  void deliver(std::size_t message);

  virtual_clock& clock_;
  machine_model how_;
  bool is_free_;
  std::vector<lane> out_, in_; // of ranks
  std::vector<machine> machines_;
  std::map<std::pair<int, int>, lane> links_; // from machine, to machine
  std::vector<passage> under_way_;
  std::vector<std::size_t> free_;     // places in under_way_
  std::vector<std::size_t> arrivals_; // first bytes at this instant
};

} // namespace troupe
