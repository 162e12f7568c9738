// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "models/data/data_set.hpp"

#include <functional>
#include <span>
#include <vector>

namespace troupe {

/// Which windows of a text training sees.
enum class text_order : std::uint8_t {
  random,     ///< Windows drawn by the seed from the first 90% of the tokens.
  sequential, ///< Sample k is tokens kT to kT+T of the whole text, wrapping.
  /// Windows drawn by the seed from all tokens. Evaluations see all of them as well:
  /// the text is for one of both.
  whole,
};

/// Tokens of one file that lie in memory: bytes, or words of 16 or 32 bits.
template <class Token>
struct token_file {
  std::span<const Token> tokens;
  std::shared_ptr<const void> owner; ///< Of the memory of tokens and header.
  std::string name;
  std::span<const std::byte> header = {}; ///< Before the tokens.
  /// Called before tokens are read, if they may be gone by then. \throws what is wrong
  std::function<void()> check = {};
  /// Called with tokens that have been read, if they need not stay in memory.
  std::function<void(std::span<const Token>)> release = {};
};

/// A text that is there as tokens.
template <class Token>
struct token_text {
  std::vector<token_file<Token>> files; ///< One behind another.
  std::string name;
  std::string unit; ///< Of a token: "byte".
};

/// Windows of T tokens of a text; the labels are the tokens that follow each. The last
/// 10% (of a whole text all), cut into windows, is for evaluation. On error the end of
/// a sentence: that the text is too short, or which token is not one of `words`.
template <class Token>
tl::expected<std::shared_ptr<const data_set>, std::string>
windows_of(token_text<Token> text, text_order order, std::int64_t length,
           std::int64_t words, std::uint64_t seed);

} // namespace troupe
