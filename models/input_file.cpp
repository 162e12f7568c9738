// SPDX-License-Identifier: BSD-3-Clause
#include "models/input_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace troupe {

namespace {

std::string text_of(int error) {
  return std::generic_category().message(error);
}

/// The kind of a file that is not a regular one.
std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode))
    return "a folder";
  if (S_ISFIFO(mode))
    return "a FIFO";
  return "a device";
}

} // namespace

tl::expected<input_file, std::string>
input_file::open(const std::filesystem::path& path, const std::string& description) {
  input_file result;
  result.name_ = description + " " + path.string();
  const auto refuse = [&](const std::string& why) {
    return tl::unexpected{"cannot read " + result.name_ + ": " + why};
  };
  const auto kind = [&](const struct stat& status) {
    return refuse("it is " + kind_of(status.st_mode) + ", not a regular file");
  };
  struct stat status {};
  if (stat(path.c_str(), &status) != 0)
    return refuse(text_of(errno));
  if (!S_ISREG(status.st_mode)) // to open such a file might change something
    return kind(status);
  // A FIFO that has replaced the file meanwhile is opened without waiting for the
  // FIFO's writer.
  result.file_ =
    descriptor{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
  if (!result.file_.is_open() || fstat(result.number(), &status) != 0)
    return refuse(text_of(errno));
  if (!S_ISREG(status.st_mode))
    return kind(status);
  result.size_ = status.st_size;
  return result;
}

void input_file::read(std::int64_t begin, void* to, std::int64_t bytes) const {
  auto* destination = static_cast<char*>(to);
  while (bytes > 0) {
    const auto count =
      pread(number(), destination, static_cast<std::size_t>(bytes), begin);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      throw std::runtime_error("cannot read " + name_ + ": "
                               + (count < 0 ? text_of(errno) : "it became shorter"));
    destination += count;
    begin += count;
    bytes -= count;
  }
}

std::string input_file::content() const {
  std::string result(static_cast<std::size_t>(size_), '\0');
  read(0, result.data(), size_);
  return result;
}

void input_file::check_size() const {
  struct stat status {};
  if (fstat(number(), &status) == 0 && status.st_size < size_)
    throw std::runtime_error("cannot read " + name_ + ": it became shorter");
}

std::shared_ptr<const void> input_file::mapped() const {
  const auto bytes = static_cast<std::size_t>(size_);
  auto* const begin = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, number(), 0);
  if (begin == MAP_FAILED)
    throw std::runtime_error("cannot map " + name_ + ": " + text_of(errno));
  return {begin, [bytes](void* address) { munmap(address, bytes); }};
}

} // namespace troupe
