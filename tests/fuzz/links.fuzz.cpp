// SPDX-License-Identifier: BSD-3-Clause
// Any bytes, as a connection brings them: a greeting, then frames, in pieces of any
// size.

#include "messaging/links/tensor_link.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace {

using namespace troupe;

constexpr std::uint64_t most_payload = 1 << 16;

/// Gives its bytes in pieces, then ends. What is written to it is gone.
class given_bytes : public byte_stream {
public:
  given_bytes(std::span<const std::uint8_t> bytes, std::size_t piece)
    : bytes_(bytes), piece_(piece) {
    // nop
  }

  stream_progress shake_hands() override { return {stream_progress::state::moved}; }
  stream_progress read(std::span<std::byte> to) override {
    const auto count = std::min({piece_, to.size(), bytes_.size()});
    if (count == 0)
      return {stream_progress::state::closed};
    std::memcpy(to.data(), bytes_.data(), count);
    bytes_ = bytes_.subspan(count);
    return {stream_progress::state::moved, count};
  }
  stream_progress write(std::span<const iovec>) override {
    return {stream_progress::state::closed};
  }
  const std::string& failure() const override { return none_; }
  int socket() const override { return -1; }

private:
  std::span<const std::uint8_t> bytes_;
  std::size_t piece_;
  std::string none_;
};

class anywhere : public frame_receiver {
public:
  tl::expected<areas, std::string> place(int, frame_kind,
                                         std::span<const unsigned char> text,
                                         std::uint64_t bytes) override {
    payload_.resize(bytes);
    const auto cut = text.empty() ? 0 : std::min<std::size_t>(text[0], bytes);
    const std::span all{payload_};
    return areas{all.first(cut), all.subspan(cut)};
  }
  std::string deliver(int) override { return {}; }
  void lost(int, const std::string&) override {}

private:
  std::vector<std::byte> payload_;
};

/// Makes sums right, so that what is behind them is reached too.
void seal(std::vector<std::uint8_t>& bytes) {
  for (std::size_t at = 0; at + sizeof(frame_header) <= bytes.size();) {
    frame_header header;
    std::memcpy(&header, bytes.data() + at, sizeof header);
    const auto behind = at + sizeof header;
    const auto size = std::uint64_t{header.text_bytes} + header.payload_bytes;
    if (size > bytes.size() - behind)
      return;
    running_checksum sum;
    sum.add(std::as_bytes(std::span{bytes}.subspan(behind, size)));
    header.checksum = sum.value();
    header.header_checksum = checksum_of(header);
    std::memcpy(bytes.data() + at, &header, sizeof header);
    at = behind + size;
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2)
    return 0;
  std::vector<std::uint8_t> bytes(data + 2, data + size);
  if (data[0] % 2 == 0)
    seal(bytes);
  greeting first;
  if (bytes.size() >= sizeof first) {
    std::memcpy(&first, bytes.data(), sizeof first);
    (void)greeting_error(first);
  }
  anywhere receiver;
  tensor_link link{1,
                   std::make_unique<given_bytes>(bytes, std::size_t{data[1]} + 1),
                   {{1, 2}, 3},
                   most_payload,
                   receiver};
  while (link.read().empty())
    continue;
  return 0;
}
