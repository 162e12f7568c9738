// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/frame.hpp"

#include "messaging/links/expects_tls.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>

namespace troupe {

namespace {

constexpr const char* no_language_of_ours = "it does not use troupe's protocol";

/// True if a connection's first bytes are a record of TLS.
bool is_tls(std::uint64_t first, unsigned char type) {
  return (first & 0xff) == type && (first >> 8U & 0xff) == 3;
}

} // namespace

std::string header_error(const frame_header& header, const session_id& expected,
                         std::uint64_t sequence, std::uint64_t most_payload_bytes) {
  if (header.magic != frame_header::right_magic)
    return "it sent bytes that are no frame";
  if (header.header_checksum != checksum_of(header))
    return "a frame's header was damaged on the way";
  if (header.session != expected.session || header.generation > expected.generation)
    return "it sent a frame of another run";
  if (header.sequence != sequence)
    return "frame " + std::to_string(sequence) + " is missing";
  if (header.kind != frame_kind::message && header.kind != frame_kind::layer)
    return "it sent a frame of an unknown kind";
  if (header.text_bytes > most_text_bytes || header.payload_bytes > most_payload_bytes)
    return "it sent a frame that is too large";
  return {};
}

namespace {

std::uint64_t checksum_of(const control_header& header) {
  return XXH3_64bits(&header, offsetof(control_header, header_checksum));
}

} // namespace

control_header header_of(control_kind kind, std::uint32_t generation,
                         std::uint64_t sequence, std::span<const unsigned char> text) {
  control_header result{.kind = kind,
                        .generation = generation,
                        .text_bytes = static_cast<std::uint32_t>(text.size()),
                        .sequence = sequence,
                        .checksum = XXH3_64bits(text.data(), text.size())};
  result.header_checksum = checksum_of(result);
  return result;
}

std::string header_error(const control_header& header, std::uint64_t sequence) {
  if (header.magic != control_header::right_magic)
    return "it sent bytes that are no control frame";
  if (header.header_checksum != checksum_of(header))
    return "a control frame's header was damaged on the way";
  if (header.kind != control_kind::node && header.kind != control_kind::actors)
    return "it sent a control frame of an unknown kind";
  if (header.text_bytes == 0 || header.text_bytes > most_control_bytes)
    return "it sent a control frame that is empty or too large";
  if (header.sequence > sequence)
    return "control frame " + std::to_string(sequence) + " is missing";
  return {};
}

std::string text_error(const control_header& header,
                       std::span<const unsigned char> text) {
  return header.checksum == XXH3_64bits(text.data(), text.size())
           ? ""
           : "a control frame was damaged on the way";
}

std::string magic_error(std::uint32_t first) {
  constexpr unsigned char alert = 21;
  if (is_tls(first, alert))
    return expects_tls;
  return first == control_header::right_magic ? "" : no_language_of_ours;
}

std::string greeting_error(const greeting& first) {
  constexpr unsigned char handshake = 22;
  if (is_tls(first.magic, handshake))
    return "it speaks TLS, and this side was started without --tls";
  if (first.magic != greeting::right_magic)
    return no_language_of_ours;
  if (first.version != greeting{}.version)
    return "it uses another version of troupe's protocol";
  if (first.intent < greeting::purpose::leader
      || first.intent > greeting::purpose::tensors)
    return "it requests an unknown kind of connection";
  if (std::ranges::any_of(first.unused, [](auto word) { return word != 0; }))
    return "its first message sets fields that this version does not use";
  return {};
}

std::uint64_t checksum_of(const frame_header& header) {
  return XXH3_64bits(&header, offsetof(frame_header, header_checksum));
}

} // namespace troupe
