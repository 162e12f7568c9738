// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

// The bytes that processes of a run send each other: greetings, frames on tensor links,
// and frames on control lines, with checks of their headers.

namespace troupe {

/// Identifies an attempt at a run: a secret that only the run's processes know, and the
/// number of the attempt.
struct session_id {
  std::array<std::uint64_t, 2> session{};
  std::uint32_t generation = 0;

  bool operator==(const session_id&) const = default;
};

/// The content of a frame on a tensor link.
enum class frame_kind : std::uint32_t {
  message = 1, ///< Text: a message between actors. Payload: the message's tensors.
  layer = 2,   ///< Before a run. Text: the layer's key. Payload: the layer's values.
};

/// The header of a frame on a tensor link. The frame's text and payload follow. The
/// header has 64 bytes; numbers are little-endian, as in all supported processors.
struct frame_header {
  std::uint32_t magic = right_magic;
  frame_kind kind = frame_kind::message;
  std::array<std::uint64_t, 2> session{};
  /// Number of the frame on the link, in one direction: 0, 1, ..
  std::uint64_t sequence = 0;
  std::uint32_t generation = 0;
  std::uint32_t text_bytes = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t checksum = 0;        ///< XXH3 of the text, followed by the payload.
  std::uint64_t header_checksum = 0; ///< XXH3 of the header's bytes before this field.

  static constexpr std::uint32_t right_magic = 0x31505254; // "TRP1"
};
static_assert(sizeof(frame_header) == 64 && std::is_trivially_copyable_v<frame_header>);

inline constexpr std::uint32_t most_text_bytes = 4 << 20;

/// The content of the text of a frame on a control line: Cap'n Proto bytes
/// (messaging/wire).
enum class control_kind : std::uint32_t {
  node = 1,  ///< wire::node_message.
  actors = 2 ///< wire::addressed_message; the header has the run's generation.
};

/// The header before the text of each frame on a control line: 40 bytes.
struct control_header {
  std::uint32_t magic = right_magic;
  control_kind kind = control_kind::node;
  std::uint32_t generation = 0;
  std::uint32_t text_bytes = 0;
  /// Number of the frame on the line, in one direction: 0, 1, ..
  std::uint64_t sequence = 0;
  std::uint64_t checksum = 0;        ///< XXH3 of the text.
  std::uint64_t header_checksum = 0; ///< XXH3 of the header's bytes before this field.

  static constexpr std::uint32_t right_magic = 0x32435254; // "TRC2"
};
static_assert(sizeof(control_header) == 40
              && std::is_trivially_copyable_v<control_header>);

inline constexpr std::uint32_t most_control_bytes = 512 << 10;

/// The first 64 bytes that a process sends on a connection.
struct greeting {
  enum class purpose : std::uint32_t {
    /// Control line from a leader, or from a process that requests a node's status.
    leader = 1,
    control = 2, ///< A control line of another node of a run.
    tensors = 3, ///< A tensor link of a run.
  };

  std::uint64_t magic = right_magic;
  purpose intent = purpose::leader;
  std::uint32_t version = 3; ///< Version of the format of all bytes that follow.
  std::array<std::uint64_t, 2> session{};
  std::uint32_t generation = 0;
  /// Number of the sending node in the run; 0: the leader, or a process outside of the
  /// run.
  std::uint32_t from = 0;
  std::array<std::uint64_t, 3> unused{};

  static constexpr std::uint64_t right_magic = 0x4550554f5254; // "TROUPE"
};
static_assert(sizeof(greeting) == 64 && std::is_trivially_copyable_v<greeting>);

/// The reason to reject a header; empty if the header is valid. A frame of an older
/// generation of the session is valid: the receiver reads and drops the frame.
/// \param sequence the number that the frame must have
std::string header_error(const frame_header& header, const session_id& expected,
                         std::uint64_t sequence, std::uint64_t most_payload_bytes);

/// Returns the header of a control frame with this text, with checksums.
control_header header_of(control_kind kind, std::uint32_t generation,
                         std::uint64_t sequence, std::span<const unsigned char> text);

/// The reason to reject a header on a control line; empty if the header is valid. A
/// repeated frame, with a number below `sequence`, is valid: the receiver reads and
/// drops the frame's text.
/// \param sequence the number that the next new frame has
std::string header_error(const control_header& header, std::uint64_t sequence);

/// The reason to reject the text that follows `header`; empty if the text is
/// valid.
std::string text_error(const control_header& header,
                       std::span<const unsigned char> text);

/// The reason to reject the first 4 bytes of a control line, because no control frame
/// begins with such bytes. Empty if the bytes are valid.
std::string magic_error(std::uint32_t first);

/// The reason to reject a greeting; empty if the greeting is valid. The sender may be
/// any process. The session, the generation and the sender's number are not checked.
std::string greeting_error(const greeting& first);

/// The checksum that `header_checksum` must equal: XXH3 of the header's bytes before
/// that field.
std::uint64_t checksum_of(const frame_header& header);

} // namespace troupe
