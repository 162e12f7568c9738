// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/node_links.hpp"

#include "kernels/threads.hpp"
#include "plan/free_memory.hpp"

#include <utility>

namespace troupe {

std::string version() {
  return TROUPE_VERSION;
}

node_links::node_links(std::shared_ptr<tls_identity> identity)
  : identity_(std::move(identity)),
    tunnels_(identity_ ? std::make_unique<tunnels>() : nullptr) {
  // nop
}

tl::expected<std::unique_ptr<node_links>, std::string>
node_links::from(const std::optional<tls_files>& tls) {
  // CAF's threads and heaps need this memory. Without it CAF ends the process, as was
  // seen with up to 250 MiB.
  constexpr std::int64_t least = 300;
  if (const auto memory = memory_of_process(); memory.bytes >> 20 < least)
    return tl::unexpected{"connections to other processes need " + std::to_string(least)
                          + " MiB of memory; " + memory.where + " has "
                          + std::to_string(memory.bytes >> 20) + " MiB free"};
  // CAF has five threads, and a port has some of troupe's. If one of CAF's does not
  // start, a signal ends the process.
  constexpr int threads = 8;
  if (const int free = count_of_free_threads(threads); free < threads)
    return tl::unexpected{"connections to other processes need "
                          + std::to_string(threads)
                          + " more threads; the system lets this user start "
                          + std::to_string(free) + ": raise the limit (ulimit -u)"};
  std::shared_ptr<tls_identity> identity;
  if (tls) {
    auto loaded = tls_identity::from(*tls);
    if (!loaded)
      return tl::unexpected{"--tls: " + loaded.error()};
    identity = std::move(*loaded);
  }
  return std::unique_ptr<node_links>{new node_links{std::move(identity)}};
}

std::unique_ptr<byte_stream> node_links::to(socket_descriptor socket,
                                            const std::string& host) {
  return identity_ ? identity_->to_server(std::move(socket), host)
                   : plain_stream(std::move(socket));
}

std::unique_ptr<byte_stream> node_links::from(socket_descriptor socket) {
  return identity_ ? identity_->to_client(std::move(socket))
                   : plain_stream(std::move(socket));
}

std::shared_ptr<control_line> node_links::line(std::unique_ptr<byte_stream> stream,
                                               control_listener listener) {
  auto socket = stream->take_socket();
  if (!socket)
    socket = tunnels_->open(std::move(stream));
  return lines_.add(std::move(socket), std::move(listener));
}

} // namespace troupe
