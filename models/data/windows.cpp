// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/windows.hpp"

#include "models/random.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe {

namespace {

template <class Token>
class windows : public data_set {
public:
  windows(token_text<Token> text, text_order order, std::int64_t length,
          std::int64_t words, std::uint64_t seed)
    : text_(std::move(text)),
      order_(order),
      length_(length),
      words_(words),
      draws_(seed, "text windows"),
      held_out_(size() - size() / 10) {
    // nop
  }

  std::optional<sample_shape> one_sample() const override {
    return sample_shape{length_, length_, true};
  }

  void training(std::int64_t index, const sample_view& to) const override {
    if (order_ == text_order::sequential)
      copy(index % size() * length_ % size(), to);
    else
      copy(draws_.below(static_cast<std::uint64_t>(index), held_out_ - length_), to);
  }

  std::int64_t evaluation_size() const override {
    return std::max<std::int64_t>(size() - held_out_ - 1, 0) / length_;
  }

  void evaluation(std::int64_t index, const sample_view& to) const override {
    copy(held_out_ + index * length_, to);
  }

  bool evaluates_training_data() const override {
    return order_ == text_order::sequential;
  }

  std::optional<std::int64_t> epoch() const override {
    return (order_ == text_order::sequential ? size() : held_out_) / length_;
  }

  std::optional<data_identity> identity() const override {
    const std::string kind =
      sizeof(Token) == 1 ? "text"
                         : "tokens of " + std::to_string(8 * sizeof(Token)) + " bits";
    return text_.sum.identity(kind
                              + (order_ == text_order::sequential ? " in order" : ""));
  }

  std::string description() const override {
    return text_.name + ", " + std::to_string(size()) + " " + text_.unit + "s"
           + (order_ == text_order::sequential ? ", in order" : ", windows at random");
  }

private:
  std::int64_t size() const { return std::ssize(text_.tokens); }

  /// What the file held at first was looked at; it may have been written again.
  std::int32_t token(std::int64_t at) const {
    const auto result = text_.tokens[static_cast<std::size_t>(at % size())];
    if (result >= words_)
      throw std::runtime_error(text_.name + " was changed meanwhile, and holds "
                               + text_.unit + " " + std::to_string(result)
                               + " at position " + std::to_string(at % size()));
    return static_cast<std::int32_t>(result);
  }

  void copy(std::int64_t begin, const sample_view& to) const {
    if (text_.check)
      text_.check();
    for (std::int64_t t = 0; t < length_; ++t) {
      to.tokens[t] = token(begin + t);
      to.labels[t] = token(begin + t + 1);
    }
    if (text_.release)
      text_.release(text_.tokens.subspan(
        static_cast<std::size_t>(begin % size()),
        static_cast<std::size_t>(std::min(length_ + 1, size() - begin % size()))));
  }

  token_text<Token> text_;
  text_order order_;
  std::int64_t length_;
  std::int64_t words_;
  random_stream draws_;
  std::int64_t held_out_; // the first token for evaluation
};

/// The number of the first token that is not one of so many words; absent if all are,
/// and then each of them is in the text's sum.
template <class Token>
std::optional<std::int64_t> first_beyond(token_text<Token>& text, std::int64_t words) {
  constexpr std::size_t at_once = 1 << 20;
  const auto all = text.tokens;
  for (std::size_t first = 0; first < all.size(); first += at_once) {
    const auto piece = all.subspan(first, std::min(at_once, all.size() - first));
    Token largest = 0; // first, as that is many times as fast as a search
    for (const auto token : piece)
      largest = std::max(largest, token);
    if (largest >= words)
      return std::ranges::find_if(all.begin() + static_cast<std::ptrdiff_t>(first),
                                  all.end(), [&](Token t) { return t >= words; })
             - all.begin();
    text.sum.add(std::as_bytes(piece));
    if (text.release)
      text.release(piece);
  }
  return {};
}

} // namespace

template <class Token>
tl::expected<std::shared_ptr<const data_set>, std::string>
windows_of(token_text<Token> text, text_order order, std::int64_t length,
           std::int64_t words, std::uint64_t seed) {
  const auto size = std::ssize(text.tokens);
  if (size == 0 || (order == text_order::random && size - size / 10 <= length))
    return tl::unexpected{
      "has " + std::to_string(size) + " " + text.unit
      + "s; nine tenths of a text must be longer than a sequence of "
      + std::to_string(length)};
  if (const auto at = first_beyond(text, words))
    return tl::unexpected{"holds " + text.unit + " "
                          + std::to_string(text.tokens[static_cast<std::size_t>(*at)])
                          + " at position " + std::to_string(*at) + "; with --vocab "
                          + std::to_string(words) + " words are 0 to "
                          + std::to_string(words - 1)};
  return std::make_shared<windows<Token>>(std::move(text), order, length, words, seed);
}

template tl::expected<std::shared_ptr<const data_set>, std::string>
  windows_of(token_text<std::uint8_t>, text_order, std::int64_t, std::int64_t,
             std::uint64_t);
template tl::expected<std::shared_ptr<const data_set>, std::string>
  windows_of(token_text<std::uint16_t>, text_order, std::int64_t, std::int64_t,
             std::uint64_t);
template tl::expected<std::shared_ptr<const data_set>, std::string>
  windows_of(token_text<std::uint32_t>, text_order, std::int64_t, std::int64_t,
             std::uint64_t);

} // namespace troupe
