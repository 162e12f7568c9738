// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/wire/words.hpp"

#include <kj/exception.h>
#include <kj/io.h>

#include <cstring>

namespace troupe::wire {

namespace {

/// The depth of lists, structs and pointers inside each other; no message has more than
/// 5.
constexpr int most_nesting = 16;

/// Messages have one segment, or a few if one is too small.
constexpr std::uint32_t most_segments = 64;

class bytes_written : public kj::OutputStream {
public:
  explicit bytes_written(std::size_t expected) { written.reserve(expected); }

  void write(const void* from, std::size_t size) override {
    const auto* first = static_cast<const unsigned char*>(from);
    written.insert(written.end(), first, first + size);
  }

  std::vector<unsigned char> written;
};

bool aligned(const unsigned char* address) {
  return reinterpret_cast<std::uintptr_t>(address) % alignof(std::uint64_t) == 0;
}

std::vector<std::uint64_t> copied(std::span<const unsigned char> from) {
  if (from.empty() || from.size() % sizeof(capnp::word) != 0)
    throw bad_bytes{"a message has whole words of 8 bytes, not "
                    + std::to_string(from.size()) + " bytes"};
  std::uint32_t segments = 0; // less one; little-endian, like this processor
  std::memcpy(&segments, from.data(), sizeof segments);
  if (segments >= most_segments)
    throw bad_bytes{"a message has no more than " + std::to_string(most_segments)
                    + " segments"};
  if (aligned(from.data()))
    return {};
  std::vector<std::uint64_t> result(from.size() / sizeof(capnp::word));
  std::memcpy(result.data(), from.data(), from.size());
  return result;
}

} // namespace

void read_budget::spend(std::size_t count, std::size_t bytes_each) {
  if (count > left_ / bytes_each)
    throw bad_bytes{"a list of " + std::to_string(count)
                    + " is longer than its message allows"};
  left_ -= count * bytes_each;
}

outgoing::outgoing()
  : scratch_{},
    message_{kj::arrayPtr(reinterpret_cast<capnp::word*>(scratch_.data()),
                          scratch_.size() / sizeof(capnp::word))} {
  // nop
}

std::vector<unsigned char> outgoing::to_bytes() {
  bytes_written result{capnp::computeSerializedSizeInWords(message_)
                       * sizeof(capnp::word)};
  capnp::writeMessage(result, message_);
  return std::move(result.written);
}

incoming::incoming(std::span<const unsigned char> from)
  : copy_(copied(from)),
    words_(copy_.empty() ? reinterpret_cast<const capnp::word*>(from.data())
                         : reinterpret_cast<const capnp::word*>(copy_.data()),
           from.size() / sizeof(capnp::word)),
    message_{
      words_,
      {.traversalLimitInWords = 4 * words_.size(), .nestingLimit = most_nesting}} {
  if (message_.getEnd() != words_.end())
    throw bad_bytes{"bytes follow the end of a message"};
}

std::string sentence_of(const kj::Exception& e) {
  std::string result{"a message is damaged: "};
  for (const char c : e.getDescription())
    result += c == '\n' ? ' ' : c;
  return result;
}

} // namespace troupe::wire
