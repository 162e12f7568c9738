// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/node_links.hpp"

#include "kernels/threads.hpp"
#include "plan/free_memory.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

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

std::string plaintext_error(const node_address& a, bool has_tls, bool insecure) {
  if (has_tls || insecure)
    return {};
  const auto local = is_loopback(a);
  if (!local)
    return local.error();
  return *local
           ? ""
           : to_string(a)
               + " can be reached from other machines: say --tls "
                 "CERTIFICATE,KEY,AUTHORITY, or --insecure on a network that you trust";
}

tl::expected<std::vector<node_address>, std::string>
parse_nodes(const std::vector<std::string>& addresses, bool has_tls, bool insecure) {
  std::vector<node_address> result;
  for (const auto& text : addresses) {
    auto address = parse_address(text);
    if (!address)
      return tl::unexpected{"--nodes " + address.error()};
    if (address->port == 0)
      return tl::unexpected{
        "--nodes '" + text
        + "' has port 0, at which no node listens: give the port of a node"};
    if (std::ranges::find(result, *address) != result.end())
      return tl::unexpected{"--nodes names " + text + " twice"};
    if (auto error = plaintext_error(*address, has_tls, insecure); !error.empty())
      return tl::unexpected{"--nodes " + error};
    result.push_back(std::move(*address));
  }
  return result;
}

} // namespace troupe
