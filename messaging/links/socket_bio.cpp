#include "messaging/links/socket_bio.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace troupe {

namespace {

/// Calls, and calls again what a signal has interrupted. \returns as BIO_read_ex
template <class Call>
int moved(BIO* bio, std::size_t* count, int retry, Call call) {
  auto& socket = *static_cast<bio_socket*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  ssize_t result = 0;
  do
    result = call(socket.fd);
  while (result < 0 && errno == EINTR);
  socket.error = result < 0 ? errno : 0;
  *count = result > 0 ? static_cast<std::size_t>(result) : 0;
  if (socket.error == EAGAIN || socket.error == EWOULDBLOCK) {
    BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    socket.error = 0;
  }
  return result > 0 ? 1 : 0;
}

int read(BIO* bio, char* to, std::size_t size, std::size_t* count) {
  const auto result =
    moved(bio, count, BIO_FLAGS_READ, [&](int fd) { return ::recv(fd, to, size, 0); });
  auto& socket = *static_cast<bio_socket*>(BIO_get_data(bio));
  socket.ended = size > 0 && result == 0 && socket.error == 0 && !BIO_should_retry(bio);
  return result;
}

int write(BIO* bio, const char* from, std::size_t size, std::size_t* count) {
  return moved(bio, count, BIO_FLAGS_WRITE,
               [&](int fd) { return ::send(fd, from, size, MSG_NOSIGNAL); });
}

long control(BIO* bio, int what, long, void*) {
  switch (what) {
  case BIO_CTRL_EOF:
    return static_cast<bio_socket*>(BIO_get_data(bio))->ended ? 1 : 0;
  case BIO_CTRL_FLUSH: // nothing waits here, which is success
    return 1;
  default:
    return 0;
  }
}

const BIO_METHOD* method() {
  static const auto result = [] {
    bio_method_pointer made{BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK,
                                         "socket without signals")};
    if (made) {
      BIO_meth_set_read_ex(made.get(), read);
      BIO_meth_set_write_ex(made.get(), write);
      BIO_meth_set_ctrl(made.get(), control);
    }
    return made;
  }();
  return result.get();
}

} // namespace

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
