// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Data sets of windows of a text.

#include "models/data/data_set.hpp"

#include <functional>
#include <span>
#include <vector>

namespace troupe {

/// The windows of a text that training sees.
enum class text_order : std::uint8_t {
  random,     ///< Windows drawn by the seed from the first 90% of the tokens.
  sequential, ///< Sample k is tokens kT to kT+T of the whole text, wrapping.
  /// Windows drawn by the seed from all tokens. Evaluations see all tokens as well: the
  /// text is for training or for evaluation, not for both.
  whole,
};

/// Tokens of one file in memory: bytes, or words of 16 or 32 bits.
template <class Token>
struct token_file {
  std::span<const Token> tokens;
  std::shared_ptr<const void> owner; ///< Owner of the memory of tokens and header.
  std::string name;
  std::span<const std::byte> header = {}; ///< Bytes before the tokens.
  /// Called before tokens are read, if the memory may be gone by then; may be empty.
  /// Several threads may call `check` and `release` at the same time.
  /// \throws std::runtime_error if the memory is gone
  std::function<void()> check = {};
  /// Called with tokens that have been read, if the tokens need not stay in memory; may
  /// be empty.
  std::function<void(std::span<const Token>)> release = {};
};

/// A text as tokens.
template <class Token>
struct token_text {
  std::vector<token_file<Token>> files; ///< In the order of the text.
  std::string name;
  std::string unit; ///< Name of a token: "byte".
};

/// Windows of T tokens of a text; the label of each token is the token that follows.
/// The last 10% of the text (with text_order::whole, all of the text), cut into
/// windows, is for evaluation; tokens after the last whole window are left out. On
/// error the end of a sentence: a token is not below `words`, or the text is too short.
/// A text is too short if training sees at most T tokens; in sequential order, if the
/// text is empty.
template <class Token>
tl::expected<std::shared_ptr<const data_set>, std::string>
windows_of(token_text<Token> text, text_order order, std::int64_t length,
           std::int64_t words, std::uint64_t seed);

} // namespace troupe
