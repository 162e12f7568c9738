#include "messaging/links/frame.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>

namespace troupe {

std::string fault_of(const frame_header& header, const session_id& of,
                     std::uint64_t sequence, std::uint64_t most_payload_bytes) {
  if (header.magic != frame_header::right_magic)
    return "it sent what is no frame";
  if (header.own_checksum != checksum_of(header))
    return "a frame's header was damaged on the way";
  if (header.session != of.session || header.generation > of.generation)
    return "it sent a frame of another run";
  if (header.sequence != sequence)
    return "frame " + std::to_string(sequence) + " is missing";
  if (header.what != frame_kind::mail && header.what != frame_kind::layer)
    return "it sent a frame of an unknown kind";
  if (header.text_bytes > most_text_bytes || header.payload_bytes > most_payload_bytes)
    return "it sent a frame that is too large";
  return {};
}

std::string fault_of(const greeting& first) {
  if (first.magic != greeting::right_magic)
    return "it does not speak troupe's language";
  if (first.version != greeting{}.version)
    return "it speaks another version of troupe's language";
  if (first.what < greeting::purpose::lead || first.what > greeting::purpose::tensors)
    return "it wants what no node offers";
  if (std::ranges::any_of(first.unused, [](auto word) { return word != 0; }))
    return "its greeting has more in it than a greeting has";
  return {};
}

std::uint64_t checksum_of(const frame_header& header) {
  return XXH3_64bits(&header, offsetof(frame_header, own_checksum));
}

} // namespace troupe
