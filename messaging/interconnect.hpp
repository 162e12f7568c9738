// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "kernels/virtual_clock.hpp"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

// A model of the network between ranks and machines, for runs in virtual time.

namespace troupe {

/// The cost of a message between two ports.
struct link_cost {
  nanoseconds latency = 0;     ///< Time from departure to arrival of the first byte.
  double bytes_per_second = 0; ///< Bandwidth; 0: bytes take no time.

  /// The nanoseconds for which `bytes` bytes occupy a port or a link of this bandwidth.
  nanoseconds occupied(double bytes) const;

  bool operator==(const link_cost&) const = default;
};

/// The machine of each rank, and the links inside and between machines.
struct machine_model {
  /// Number of ranks of each machine: rank r is on machine r / ranks_each. 0: all ranks
  /// are on one machine.
  int ranks_each = 0;
  link_cost inside = {};  ///< Link between ranks of one machine.
  link_cost between = {}; ///< Link between machines.
  /// Links between two machines that replace `between`, by the numbers of both
  /// machines; the lower number is first.
  std::map<std::pair<int, int>, link_cost> pairs = {};

  int machine_of(int rank) const { return ranks_each > 0 ? rank / ranks_each : 0; }
  const link_cost& between_machines(int a, int b) const;
  const link_cost& between_ranks(int a, int b) const;

  /// The largest latency and the lowest bandwidth of all links; the two may be of
  /// different links. `between` counts only if `ranks_each` is above 0.
  link_cost slowest() const;
};

/// The interconnect of a run in virtual time. A rank has one full-duplex port for all
/// messages. A machine has one full-duplex port for messages to other machines.
///
/// Ports cut through: a port passes first bytes on before last bytes arrive. A message
/// occupies the sender's port for bytes / bandwidth. From the arrival of the first
/// byte, the message occupies the receiver's port for bytes / bandwidth. A port serves
/// messages in the order in which first bytes arrive; ties go to the lowest sending
/// rank. Latency occupies no port. A message between idle ports of one machine takes
/// latency + bytes / bandwidth.
///
///   rank 0 ─┐                                ┌─ rank 2
///           ├─ port of ── link ── port of ───┤
///   rank 1 ─┘  machine 0          machine 1  └─ rank 3
///
/// Between machines a message occupies the ports of both ranks at the bandwidth inside
/// a machine. The message also occupies the ports of both machines at the bandwidth of
/// the machine's fastest link, and the link itself at the link's bandwidth. At each
/// port and link, the time starts with the arrival of the first byte.
class interconnect {
public:
  /// \param clock outlives this object
  interconnect(virtual_clock& clock, machine_model model, int ranks);
  interconnect(const interconnect&) = delete;
  interconnect& operator=(const interconnect&) = delete;

  /// True if every link has latency 0 and unlimited bandwidth, so that no message takes
  /// any time.
  bool is_free() const { return is_free_; }

  /// Sends a message of `bytes` bytes at the current virtual time. The clock calls
  /// `arrived` when the last byte has arrived. For a rank's message to itself, send()
  /// calls `arrived` before returning. Messages between the same two ranks arrive in
  /// the order of sending.
  void send(int from, int to, double bytes, virtual_clock::event arrived);

  /// Drops all messages that are under way. Ports and links stay occupied as before.
  /// \pre the clock has dropped all events
  void clear();

private:
  /// One direction of a port, or of a link; `free_at` is the end of all messages served
  /// so far.
  struct lane {
    nanoseconds free_at = 0;

    /// Serves a message whose first byte arrives at `first`, for `occupied`
    /// nanoseconds. Returns the start of the service.
    nanoseconds serve(nanoseconds first, nanoseconds occupied);
  };

  struct machine {
    link_cost port; ///< Cost of the port, without latency.
    lane out, in;
  };

  /// The place where the first byte of a message arrives next.
  enum class hop : std::uint8_t { machine_out, machine_in, rank_in };

  /// A message that is under way.
  struct passage {
    int from;
    int to;
    double bytes;
    /// Earliest time at which the last byte can arrive at the receiver.
    nanoseconds last_byte;
    hop next;
    virtual_clock::event arrived;
  };

  nanoseconds inside(double bytes) const { return model_.inside.occupied(bytes); }
  machine& machine_of(int rank) {
    return machines_[static_cast<std::size_t>(model_.machine_of(rank))];
  }
  void go_to(hop next, std::size_t message, nanoseconds first_byte);
  void serve_arrivals();
  void serve(std::size_t message);
  void leave_machine(std::size_t message);
  void enter_machine(std::size_t message);
  void enter_rank(std::size_t message);
  void deliver(std::size_t message);

  virtual_clock& clock_;
  machine_model model_;
  bool is_free_;
  std::vector<lane> out_, in_; // ports of ranks
  std::vector<machine> machines_;
  std::map<std::pair<int, int>, lane> links_; // by sending and receiving machine
  std::vector<passage> under_way_;
  std::vector<std::size_t> free_;     // unused indices of under_way_
  std::vector<std::size_t> arrivals_; // first bytes at this instant
};

} // namespace troupe
