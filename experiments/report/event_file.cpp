// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/report/event_file.hpp"

#include "models/utf8.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

using std::string_view;

double seconds_since_1970() {
  using namespace std::chrono;
  return duration<double>(system_clock::now().time_since_epoch()).count();
}

// Castagnoli's polynomial, the lowest power first; a byte at a time.
constexpr auto crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    auto rest = byte;
    for (int bit = 0; bit < 8; ++bit)
      rest = (rest >> 1U) ^ ((rest & 1U) != 0 ? 0x82f63b78U : 0U);
    table[byte] = rest;
  }
  return table;
}();

/// Masked, so that a checksum also protects data that contain checksums.
std::uint32_t masked_crc(string_view data) {
  std::uint32_t crc = ~0U;
  for (const unsigned char byte : data)
    crc = (crc >> 8U) ^ crc_table[(crc ^ byte) & 0xffU];
  return std::rotr(~crc, 15) + 0xa282ead8U;
}

template <class Number>
std::string little_endian(Number number) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

std::string record_of(string_view data) {
  const auto length = little_endian(std::uint64_t{data.size()});
  return length + little_endian(masked_crc(length)) + std::string{data}
         + little_endian(masked_crc(data));
}

// Protocol Buffers: a message is a row of fields, each with a number, the encoding of
// the value, and the value.

enum class encoding : std::uint8_t {
  varint = 0,
  eight_bytes = 1,
  bytes = 2,
  four_bytes = 5
};

std::string varint_of(std::uint64_t number) {
  std::string text;
  for (; number >= 0x80U; number >>= 7U)
    text += static_cast<char>((number & 0x7fU) | 0x80U);
  return text + static_cast<char>(number);
}

std::string key(unsigned field, encoding kind) {
  return varint_of(field << 3U | static_cast<unsigned>(kind));
}

std::string number_field(unsigned field, std::uint64_t number) {
  return key(field, encoding::varint) + varint_of(number);
}

std::string bytes_field(unsigned field, string_view value) {
  return key(field, encoding::bytes) + varint_of(value.size()) + std::string{value};
}

/// \param last_field a version of the file, a summary or the state of a session
std::string event(std::int64_t step, const std::string& last_field) {
  return key(1, encoding::eight_bytes) + little_endian(seconds_since_1970())
         + number_field(2, static_cast<std::uint64_t>(step)) + last_field;
}

/// A summary of one value.
std::string summary(string_view tag, const std::string& value) {
  return bytes_field(5, bytes_field(1, bytes_field(1, tag) + value));
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string problem_with(const std::filesystem::path& path) {
  return "cannot write " + path.string() + ": "
         + std::error_code{errno, std::generic_category()}.message();
}

} // namespace

event_file::event_file(std::filesystem::path path, int file)
  : path_(std::move(path)), file_(file) {
  added_ = record_of(event(0, bytes_field(3, "brain.Event:2")));
}

event_file::event_file(event_file&& source) noexcept
  : path_(std::move(source.path_)),
    file_(std::exchange(source.file_, -1)),
    length_(source.length_),
    added_(std::move(source.added_)) {
  // nop
}

event_file::~event_file() {
  if (file_ >= 0)
    close(file_);
}

// TensorBoard reads the files of a folder in the order of names, each file to the end.
tl::expected<event_file, std::string>
event_file::in(const std::filesystem::path& folder) {
  const auto name = "events.out.tfevents."
                    + std::to_string(static_cast<std::int64_t>(seconds_since_1970()))
                    + "." + host_name() + "." + std::to_string(getpid()) + ".";
  for (int number = 0;; ++number) {
    auto path = folder / (name + std::to_string(number));
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file >= 0)
      return event_file{std::move(path), file};
    if (errno != EEXIST)
      return tl::unexpected{problem_with(path)};
  }
}

void event_file::add_start(std::int64_t step) {
  constexpr int start = 1;
  added_ += record_of(event(step, bytes_field(7, number_field(1, start))));
}

void event_file::add_scalar(std::int64_t step, string_view tag, double value) {
  added_ +=
    record_of(event(step, summary(tag, key(2, encoding::four_bytes)
                                         + little_endian(static_cast<float>(value)))));
}

void event_file::add_text(std::int64_t step, string_view tag, string_view text) {
  constexpr int string = 7;
  const auto shape = bytes_field(2, number_field(1, 1)); // one string
  const auto tensor = number_field(1, string) + bytes_field(2, shape)
                      + bytes_field(8, utf8(std::string{text}));
  const auto plugin = bytes_field(1, bytes_field(1, "text"));
  added_ += record_of(
    event(step, summary(tag, bytes_field(9, plugin) + bytes_field(8, tensor))));
}

std::string event_file::write() {
  std::size_t done = 0;
  while (done < added_.size()) {
    const auto wrote = ::write(file_, added_.data() + done, added_.size() - done);
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote < 0) {
      auto error = problem_with(path_);
      (void)!ftruncate(file_, length_); // later records would be unreadable
      (void)lseek(file_, length_, SEEK_SET);
      return error;
    }
    done += static_cast<std::size_t>(wrote);
  }
  length_ += static_cast<std::int64_t>(done);
  added_.clear();
  return {};
}

} // namespace troupe
