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

/// An error in received bytes, as a sentence. Decoders catch all such errors.
struct bad_bytes : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The number of bytes that the reader of a message may still allocate; at first 16
/// times the message's own bytes. A list that needs more bytes than are left is refused
/// before the list's allocation.
class read_budget {
public:
  explicit read_budget(std::size_t message) : left_(16 * message) {
    // nop
  }

  /// Takes `count` times `bytes_each` bytes from the budget.
  /// \throws bad_bytes if fewer bytes are left
  void spend(std::size_t count, std::size_t bytes_each);

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
  // A message of 64 measured actions fits into this memory, as do nearly all other
  // messages. A larger message allocates more.
  alignas(8) std::array<unsigned char, 5120> scratch_;
  capnp::MallocMessageBuilder message_;
};

/// A received message. The bytes given to the constructor must outlive this object.
/// Every value in the message may be invalid.
class incoming {
public:
  /// \throws bad_bytes if the bytes are no whole words of 8 bytes, have too many
  /// segments, or continue after the message
  /// \throws kj::Exception if the bytes end before the message does
  explicit incoming(std::span<const unsigned char> from);

  /// \throws kj::Exception if the message is damaged; later accesses to the message may
  /// throw, too
  template <class Root>
  typename Root::Reader root() {
    return message_.getRoot<Root>();
  }

private:
  std::vector<std::uint64_t> copy_; // of bytes that are not aligned
  kj::ArrayPtr<const capnp::word> words_;
  capnp::FlatArrayMessageReader message_;
};

/// Returns a sentence about an error that Cap'n Proto reports about a message.
std::string sentence_of(const kj::Exception& e);

/// Decodes a message: returns the result of `read`, which gets the message's root and a
/// budget. `read` may throw bad_bytes; the error is the sentence of that exception, or
/// of an error that Cap'n Proto reports.
template <class Root, class Read>
auto read_message(std::span<const unsigned char> from, Read read)
  -> tl::expected<std::invoke_result_t<Read, typename Root::Reader, read_budget&>,
                  std::string> {
  try {
    incoming message{from};
    read_budget left{from.size()};
    return read(message.root<Root>(), left);
  } catch (const bad_bytes& e) {
    return tl::unexpected(std::string{e.what()});
  } catch (const kj::Exception& e) {
    return tl::unexpected(sentence_of(e));
  }
}

} // namespace troupe::wire
