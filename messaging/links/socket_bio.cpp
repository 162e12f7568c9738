// SPDX-License-Identifier: BSD-3-Clause
#include "messaging/links/socket_bio.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace troupe {

namespace {

/// Makes a system call, and repeats the call after a signal. Returns the number of
/// bytes. After 0, `error` has the reason, or no bytes can be moved now.
template <class Call>
std::size_t moved(bio_socket& socket, bool& later, Call call) {
  ssize_t result = 0;
  do
    result = call(socket.fd);
  while (result < 0 && errno == EINTR);
  socket.error = result < 0 ? errno : 0;
  later = socket.error == EAGAIN || socket.error == EWOULDBLOCK;
  if (later)
    socket.error = 0;
  return result > 0 ? static_cast<std::size_t>(result) : 0;
}

bio_socket& socket_of(BIO* bio) {
  return *static_cast<bio_socket*>(BIO_get_data(bio));
}

int read(BIO* bio, char* to, std::size_t size, std::size_t* count) {
  auto& socket = socket_of(bio);
  BIO_clear_retry_flags(bio);
  if (const auto rest = socket.early.size() - socket.early_read; rest > 0) {
    *count = std::min(size, rest);
    std::memcpy(to, socket.early.data() + socket.early_read, *count);
    socket.early_read += *count;
    if (*count == rest)
      socket.early = {};
    socket.early_read = socket.early.empty() ? 0 : socket.early_read;
    return 1;
  }
  bool later = false;
  *count = moved(socket, later, [&](int fd) { return ::recv(fd, to, size, 0); });
  if (later)
    BIO_set_retry_read(bio);
  socket.ended = size > 0 && *count == 0 && socket.error == 0 && !later;
  return *count > 0 ? 1 : 0;
}

int write(BIO* bio, const char* from, std::size_t size, std::size_t* count) {
  auto& waiting = socket_of(bio).waiting;
  waiting.insert(waiting.end(), from, from + size);
  *count = size;
  return 1;
}

long control(BIO* bio, int command, long, void*) {
  switch (command) {
  case BIO_CTRL_EOF:
    return socket_of(bio).ended ? 1 : 0;
  case BIO_CTRL_FLUSH:
    BIO_clear_retry_flags(bio);
    if (flush(socket_of(bio)))
      return 1;
    if (socket_of(bio).error == 0)
      BIO_set_retry_write(bio);
    return -1;
  default:
    return 0;
  }
}

const BIO_METHOD* method() {
  static const auto result = [] {
    bio_method_pointer created{BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK,
                                            "socket without signals")};
    if (created) {
      BIO_meth_set_read_ex(created.get(), read);
      BIO_meth_set_write_ex(created.get(), write);
      BIO_meth_set_ctrl(created.get(), control);
    }
    return created;
  }();
  return result.get();
}

} // namespace

bool flush(bio_socket& socket) {
  while (socket.gone < socket.waiting.size()) {
    bool later = false;
    const auto count = moved(socket, later, [&](int fd) {
      return ::send(fd, socket.waiting.data() + socket.gone,
                    socket.waiting.size() - socket.gone, MSG_NOSIGNAL);
    });
    if (count == 0)
      return false;
    socket.gone += count;
  }
  socket.waiting.clear();
  socket.gone = 0;
  return true;
}

bio_pointer socket_bio(bio_socket& socket) {
  if (method() == nullptr)
    return nullptr;
  bio_pointer result{BIO_new(method())};
  if (result) {
    BIO_set_data(result.get(), &socket);
    BIO_set_init(result.get(), 1);
  }
  return result;
}

} // namespace troupe
