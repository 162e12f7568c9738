// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/tensor_link.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace troupe {

namespace {

constexpr std::size_t ahead_bytes = 64 << 10;
constexpr std::size_t most_parts = 64;        // of one write
constexpr std::size_t most_at_once = 8 << 20; // bytes read before the next peer's turn

iovec part_of(const void* from, std::size_t bytes) {
  return {const_cast<void*>(from), bytes}; // a write only reads the bytes
}

/// The reason why a stream has ended; empty if the stream only has no bytes now.
std::string end_of(const stream_progress& p, const byte_stream& stream) {
  using state = stream_progress::state;
  if (p.outcome == state::closed)
    return stream.failure().empty() ? "it closed the connection" : stream.failure();
  return p.outcome == state::failed ? stream.failure() : "";
}

} // namespace

tensor_link::tensor_link(int peer, std::unique_ptr<byte_stream> stream,
                         session_id session, std::uint64_t most_payload_bytes,
                         frame_receiver& receiver)
  : peer_(peer),
    stream_(std::move(stream)),
    session_(session),
    most_payload_bytes_(most_payload_bytes),
    receiver_(&receiver),
    ahead_(ahead_bytes) {
  // nop
}

void tensor_link::begin_writing() {
  const auto& next = queue_.front();
  header_out_ = {.kind = next.kind,
                 .session = session_.session,
                 .sequence = sent_++,
                 .generation = session_.generation,
                 .text_bytes = static_cast<std::uint32_t>(next.text.size())};
  sum_out_.restart();
  sum_out_.add(std::as_bytes(std::span{next.text}));
  left_ = {part_of(&header_out_, sizeof header_out_)};
  if (!next.text.empty())
    left_.push_back(part_of(next.text.data(), next.text.size()));
  for (const auto& part : next.payload) {
    if (part.bytes.empty())
      continue;
    left_.push_back(part_of(part.bytes.data(), part.bytes.size()));
    header_out_.payload_bytes += part.bytes.size();
    sum_out_.add(part.bytes);
  }
  header_out_.checksum = sum_out_.value();
  header_out_.header_checksum = checksum_of(header_out_);
  writing_ = true;
}

std::string tensor_link::write() {
  while (wants_to_write()) {
    if (!writing_)
      begin_writing();
    const auto count = std::min(left_.size(), most_parts);
    const auto moved = stream_->write({left_.data(), count});
    if (moved.outcome != stream_progress::state::moved)
      return end_of(moved, *stream_);
    moved_ += static_cast<std::int64_t>(moved.bytes);
    auto bytes = moved.bytes;
    auto first = left_.begin();
    for (; first != left_.end() && bytes >= first->iov_len; ++first)
      bytes -= first->iov_len;
    left_.erase(left_.begin(), first);
    if (!left_.empty()) {
      left_.front().iov_base = static_cast<std::byte*>(left_.front().iov_base) + bytes;
      left_.front().iov_len -= bytes;
      continue;
    }
    queue_.pop_front(); // releases the frame's buffers
    writing_ = false;
  }
  return {};
}

/// The rest of the memory area that payload is read to next.
std::span<std::byte> tensor_link::rest_of_area() {
  while (area_index_ < areas_.size() && areas_[area_index_].empty())
    ++area_index_;
  return area_index_ < areas_.size() ? areas_[area_index_] : std::span<std::byte>{};
}

/// Notes that so many more bytes of the payload are in memory.
void tensor_link::fill(std::size_t bytes) {
  auto& area = areas_[area_index_];
  sum_in_.add(area.first(bytes));
  area = area.subspan(bytes);
}

std::string tensor_link::read() {
  for (std::size_t total_bytes = 0;
       total_bytes < most_at_once || stream_->has_more();) {
    if (phase_ == phase::payload && rest_of_area().size() >= ahead_.size()) {
      const auto moved = stream_->read(rest_of_area());
      if (moved.outcome != stream_progress::state::moved)
        return end_of(moved, *stream_);
      fill(moved.bytes);
      moved_ += static_cast<std::int64_t>(moved.bytes);
      total_bytes += moved.bytes;
      if (rest_of_area().empty())
        if (auto error = end_payload(); !error.empty())
          return error;
      continue;
    }
    const auto moved = stream_->read(ahead_);
    if (moved.outcome != stream_progress::state::moved)
      return end_of(moved, *stream_);
    total_bytes += moved.bytes;
    moved_ += static_cast<std::int64_t>(moved.bytes);
    std::span<const std::byte> bytes{ahead_.data(), moved.bytes};
    while (!bytes.empty())
      if (auto error = consume(bytes); !error.empty())
        return error;
  }
  return {};
}

/// Moves some of the bytes that were read ahead to header, text or payload.
std::string tensor_link::consume(std::span<const std::byte>& bytes) {
  const auto next = [&](std::byte* to, std::size_t most) {
    const auto count = std::min(most, bytes.size());
    std::memcpy(to, bytes.data(), count);
    bytes = bytes.subspan(count);
    return count;
  };
  switch (phase_) {
  case phase::header:
    filled_bytes_ += next(reinterpret_cast<std::byte*>(&header_in_) + filled_bytes_,
                          sizeof header_in_ - filled_bytes_);
    return filled_bytes_ == sizeof header_in_ ? end_header() : "";
  case phase::text:
    filled_bytes_ += next(reinterpret_cast<std::byte*>(text_.data()) + filled_bytes_,
                          text_.size() - filled_bytes_);
    return filled_bytes_ == text_.size() ? end_text() : "";
  default:
    if (drops_) {
      const auto count = std::min<std::uint64_t>(left_to_drop_, bytes.size());
      sum_in_.add(bytes.first(count));
      bytes = bytes.subspan(count);
      left_to_drop_ -= count;
      return left_to_drop_ == 0 ? end_payload() : "";
    }
    const auto area = rest_of_area();
    fill(next(area.data(), area.size()));
    return rest_of_area().empty() ? end_payload() : "";
  }
}

std::string tensor_link::end_header() {
  if (auto error = header_error(header_in_, session_, received_, most_payload_bytes_);
      !error.empty())
    return error;
  ++received_;
  drops_ = header_in_.generation < session_.generation;
  sum_in_.restart();
  text_.resize(header_in_.text_bytes);
  filled_bytes_ = 0;
  phase_ = phase::text;
  return text_.empty() ? end_text() : "";
}

std::string tensor_link::end_text() {
  sum_in_.add(std::as_bytes(std::span{text_}));
  area_index_ = 0;
  areas_.clear();
  phase_ = phase::payload;
  if (drops_) {
    left_to_drop_ = header_in_.payload_bytes;
    return left_to_drop_ == 0 ? end_payload() : "";
  }
  auto areas =
    receiver_->place(peer_, header_in_.kind, text_, header_in_.payload_bytes);
  if (!areas)
    return areas.error();
  areas_ = std::move(*areas);
  std::uint64_t area_bytes = 0;
  for (const auto& area : areas_)
    area_bytes += area.size();
  if (area_bytes != header_in_.payload_bytes)
    return "it sent a frame whose header says another size than its tensors have";
  return area_bytes == 0 ? end_payload() : "";
}

std::string tensor_link::end_payload() {
  phase_ = phase::header;
  filled_bytes_ = 0;
  if (sum_in_.value() != header_in_.checksum)
    return "a frame was damaged on the way";
  if (!drops_)
    return receiver_->deliver(peer_);
  ++stale_;
  return {};
}

} // namespace troupe
