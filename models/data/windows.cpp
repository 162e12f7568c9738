// SPDX-License-Identifier: BSD-3-Clause
#include "models/data/windows.hpp"

#include "models/random.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe {

namespace {

template <class Token>
std::int64_t size_of(const token_text<Token>& text) {
  std::int64_t result = 0;
  for (const auto& file : text.files)
    result += std::ssize(file.tokens);
  return result;
}

template <class Token>
class windows : public data_set {
public:
  /// \param sum of the bytes of all files
  windows(token_text<Token> text, content_sum sum, text_order order,
          std::int64_t length, std::int64_t words, std::uint64_t seed)
    : text_(std::move(text)),
      sum_(std::move(sum)),
      order_(order),
      length_(length),
      words_(words),
      draws_(seed, "text windows"),
      size_(size_of(text_)),
      held_out_(order == text_order::whole ? 0 : size_ - size_ / 10),
      trained_(order == text_order::random ? held_out_ : size_) {
    std::int64_t end = 0;
    for (const auto& file : text_.files)
      ends_.push_back(end += std::ssize(file.tokens));
  }

  std::optional<sample_shape> one_sample() const override {
    return sample_shape{length_, length_, true};
  }

  void training(std::int64_t index, const sample_view& to) const override {
    if (order_ == text_order::sequential)
      copy(index % size_ * length_ % size_, to);
    else
      copy(draws_.below(static_cast<std::uint64_t>(index), trained_ - length_), to);
  }

  std::int64_t evaluation_size() const override {
    return std::max<std::int64_t>(size_ - held_out_ - 1, 0) / length_;
  }

  void evaluation(std::int64_t index, const sample_view& to) const override {
    copy(held_out_ + index * length_, to);
  }

  bool evaluates_training_data() const override {
    return order_ == text_order::sequential;
  }

  std::optional<std::int64_t> epoch() const override { return trained_ / length_; }

  std::optional<data_identity> identity() const override {
    const std::string kind =
      sizeof(Token) == 1 ? "text"
                         : "tokens of " + std::to_string(8 * sizeof(Token)) + " bits";
    return sum_.identity(kind
                         + (order_ == text_order::sequential ? " in order"
                            : order_ == text_order::whole    ? " as a whole"
                                                             : ""));
  }

  std::string description() const override {
    return text_.name + ", " + std::to_string(size_) + " " + text_.unit + "s"
           + (order_ == text_order::sequential ? ", in order"
              : order_ == text_order::random   ? ", windows at random"
                                               : "");
  }

private:
  /// A token of a file. Tokens were checked when the file was opened, but a file may
  /// have been written again.
  /// \throws std::runtime_error if the token is not a word
  std::int32_t token(const token_file<Token>& file, std::int64_t index) const {
    const auto result = file.tokens[static_cast<std::size_t>(index)];
    if (result >= words_)
      throw std::runtime_error(file.name + " was changed during the run, and holds "
                               + text_.unit + " " + std::to_string(result)
                               + " at position " + std::to_string(index));
    return static_cast<std::int32_t>(result);
  }

  /// Copies tokens from index `begin` on, from one file after another.
  void copy(std::int64_t begin, const sample_view& to) const {
    const auto total = length_ + 1; // the last token is a label alone
    for (std::int64_t done = 0; done < total;) {
      const auto position = (begin + done) % size_;
      const auto number = static_cast<std::size_t>(
        std::ranges::upper_bound(ends_, position) - ends_.begin());
      const auto& file = text_.files[number];
      const auto size = std::ssize(file.tokens),
                 first = position - (ends_[number] - size),
                 count = std::min(total - done, size - first);
      if (file.check)
        file.check();
      for (std::int64_t i = 0; i < count; ++i, ++done) {
        const auto value = token(file, first + i);
        if (done < length_)
          to.tokens[done] = value;
        if (done > 0)
          to.labels[done - 1] = value;
      }
      if (file.release)
        file.release(file.tokens.subspan(static_cast<std::size_t>(first),
                                         static_cast<std::size_t>(count)));
    }
  }

  token_text<Token> text_;
  content_sum sum_;
  text_order order_;
  std::int64_t length_;
  std::int64_t words_;
  random_stream draws_;
  std::int64_t size_;
  std::int64_t held_out_;          // the first token for evaluation
  std::int64_t trained_;           // tokens that training sees
  std::vector<std::int64_t> ends_; // of the files, in tokens of the text
};

/// The index of the first token of a file that is not one of `words` words. Absent if
/// all tokens are words; the file's bytes are then in the sum.
template <class Token>
std::optional<std::int64_t> first_beyond(const token_file<Token>& file,
                                         std::int64_t words, content_sum& sum) {
  constexpr std::size_t at_once = 1 << 20;
  const auto tokens = file.tokens;
  sum.add(file.header);
  for (std::size_t first = 0; first < tokens.size(); first += at_once) {
    const auto piece = tokens.subspan(first, std::min(at_once, tokens.size() - first));
    Token largest = 0; // the maximum first: many times as fast as a search
    for (const auto token : piece)
      largest = std::max(largest, token);
    if (largest >= words)
      return std::ranges::find_if(tokens.begin() + static_cast<std::ptrdiff_t>(first),
                                  tokens.end(), [&](Token t) { return t >= words; })
             - tokens.begin();
    sum.add(std::as_bytes(piece));
    if (file.release)
      file.release(piece);
  }
  return {};
}

} // namespace

template <class Token>
tl::expected<std::shared_ptr<const data_set>, std::string>
windows_of(token_text<Token> text, text_order order, std::int64_t length,
           std::int64_t words, std::uint64_t seed) {
  const auto size = size_of(text);
  const auto trained = order == text_order::random ? size - size / 10 : size;
  if (size == 0 || (order != text_order::sequential && trained <= length))
    return tl::unexpected{
      "has " + std::to_string(size) + " " + text.unit + "s; "
      + (order == text_order::whole ? "a text" : "nine tenths of a text")
      + " must be longer than a sequence of " + std::to_string(length)};
  content_sum sum;
  for (const auto& file : text.files)
    if (const auto index = first_beyond(file, words, sum))
      return tl::unexpected{
        "holds " + text.unit + " "
        + std::to_string(file.tokens[static_cast<std::size_t>(*index)])
        + " at position " + std::to_string(*index)
        + (text.files.size() > 1 ? " of " + file.name : "") + "; with --vocab "
        + std::to_string(words) + " words are 0 to " + std::to_string(words - 1)};
  return std::make_shared<windows<Token>>(std::move(text), std::move(sum), order,
                                          length, words, seed);
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
