// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <tl/expected.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace troupe::wire {

// Cap'n Proto messages from and to bytes, for the codec's sources.

/// What is wrong with received bytes, in a sentence. Never leaves the decoders.
struct bad_bytes : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The memory that a message may still make its reader take: a few times its own bytes.
/// One that claims more is refused before anything is allocated.
class allowance {
public:
  explicit allowance(std::size_t message) : left_(16 * message) {
    // nop
  }

  /// \throws bad_bytes if there is not so much left
  void take(std::size_t count, std::size_t bytes_each);

private:
  std::size_t left_;
};

/// A message under construction.
class outgoing {
public:
  outgoing();

  template <class Root>
  typename Root::Builder root() {
    return message_.initRoot<Root>();
  }

  std::vector<unsigned char> to_bytes();

private:
  // 64 measured actions, and all but the longest of other mails, find room here.
  alignas(8) std::array<unsigned char, 5120> scratch_;
  capnp::MallocMessageBuilder message_;
};

/// A received message; the bytes must stay. Everything it says may be a lie.
class incoming {
public:
  /// \throws bad_bytes
  explicit incoming(std::span<const unsigned char> from);

  /// \throws kj::Exception, as do all accesses to it
  template <class Root>
  typename Root::Reader root() {
    return message_.getRoot<Root>();
  }

private:
  std::vector<std::uint64_t> copy_; // Of bytes that are not aligned.
  kj::ArrayPtr<const capnp::word> words_;
  capnp::FlatArrayMessageReader message_;
};

/// The sentence for what the library says of a message.
std::string sentence_of(const kj::Exception& e);

/// What `read`, which may throw bad_bytes, makes of a message and its allowance.
template <class Root, class Read>
auto read_message(std::span<const unsigned char> from, Read read)
  -> tl::expected<std::invoke_result_t<Read, typename Root::Reader, allowance&>,
                  std::string> {
  try {
    incoming message{from};
    allowance left{from.size()};
    return read(message.root<Root>(), left);
  } catch (const bad_bytes& e) {
    return tl::unexpected(std::string{e.what()});
  } catch (const kj::Exception& e) {
    return tl::unexpected(sentence_of(e));
  }
}

} // namespace troupe::wire
