// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace troupe {

/// A run as its processes know it, and nobody else; which attempt at it.
struct session_id {
  std::array<std::uint64_t, 2> session{};
  std::uint32_t generation = 0;

  bool operator==(const session_id&) const = default;
};

/// What a frame is.
enum class frame_kind : std::uint32_t {
  mail = 1,  ///< Text: a mail between actors. Payload: its tensors.
  layer = 2, ///< Text: which layer. Payload: its values, before a run.
};

/// What stands before each frame on a tensor link: then follow its text, and its
/// payload. 64 bytes, numbers as the processor has them (little-endian; no other is
/// supported).
struct frame_header {
  std::uint32_t magic = right_magic;
  frame_kind what = frame_kind::mail;
  std::array<std::uint64_t, 2> session{};
  std::uint64_t sequence = 0; ///< Of the link: 0, 1, ..
  std::uint32_t generation = 0;
  std::uint32_t text_bytes = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t checksum = 0;     ///< XXH3 of text and payload, one behind the other.
  std::uint64_t own_checksum = 0; ///< Of the header up to here.

  static constexpr std::uint32_t right_magic = 0x31505254; // "TRP1"
};
static_assert(sizeof(frame_header) == 64 && std::is_trivially_copyable_v<frame_header>);

inline constexpr std::uint32_t most_text_bytes = 4 << 20;

/// What the text of a frame on a control line is: Cap'n Proto bytes (messaging/wire).
enum class control_kind : std::uint32_t {
  node = 1,  ///< wire::node_mail.
  actors = 2 ///< wire::addressed_mail, of a run's generation.
};

/// What stands before the text of each frame on a control line: 40 bytes.
struct control_header {
  std::uint32_t magic = right_magic;
  control_kind what = control_kind::node;
  std::uint32_t generation = 0;
  std::uint32_t text_bytes = 0;
  std::uint64_t sequence = 0;     ///< Of the line, in one direction: 0, 1, ..
  std::uint64_t checksum = 0;     ///< XXH3 of the text.
  std::uint64_t own_checksum = 0; ///< Of the header up to here.

  static constexpr std::uint32_t right_magic = 0x32435254; // "TRC2"
};
static_assert(sizeof(control_header) == 40
              && std::is_trivially_copyable_v<control_header>);

inline constexpr std::uint32_t most_control_bytes = 512 << 10;

/// What a process says first on a connection, 64 bytes too.
struct greeting {
  enum class purpose : std::uint32_t {
    lead = 1,    ///< A control line of who leads a run, or asks for the node's state.
    control = 2, ///< A control line of another node of a run.
    tensors = 3, ///< A tensor link of a run.
  };

  std::uint64_t magic = right_magic;
  purpose what = purpose::lead;
  std::uint32_t version = 2; ///< Of all that follows.
  std::array<std::uint64_t, 2> session{};
  std::uint32_t generation = 0;
  std::uint32_t from = 0; ///< Number of a node of the run.
  std::array<std::uint64_t, 3> unused{};

  static constexpr std::uint64_t right_magic = 0x4550554f5254; // "TROUPE"
};
static_assert(sizeof(greeting) == 64 && std::is_trivially_copyable_v<greeting>);

/// Why a header cannot be taken; empty if it can. Frames of older generations can: they
/// are dropped.
std::string fault_of(const frame_header& header, const session_id& of,
                     std::uint64_t sequence, std::uint64_t most_payload_bytes);

/// The sealed header of a frame with this text.
control_header header_of(control_kind what, std::uint32_t generation,
                         std::uint64_t sequence, std::span<const unsigned char> text);

/// Why a header on a control line cannot be taken; empty if it can. A repeated frame,
/// whose sequence is below the expected one, can: its text is read and dropped.
std::string fault_of(const control_header& header, std::uint64_t sequence);

/// Why the text behind such a header cannot be taken; empty if it can.
std::string fault_of(const control_header& header, std::span<const unsigned char> text);

/// Why the first bytes of a line are not those of a control frame; empty if they are.
std::string fault_of_magic(std::uint32_t first);

/// The same of a greeting, whoever sent it.
std::string fault_of(const greeting& first);

/// What seals a header.
std::uint64_t checksum_of(const frame_header& header);

} // namespace troupe
