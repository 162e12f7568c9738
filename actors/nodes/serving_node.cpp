// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/serving_node.hpp"

#include "actors/nodes/node_links.hpp"
#include "actors/nodes/node_server.hpp"
#include "kernels/threads.hpp"
#include "kernels/version.hpp"

#include <atomic>
#include <thread>
#include <utility>

namespace troupe {

struct serving_node::state {
  state(settings how, const node_address& where, std::unique_ptr<node_links> own_links,
        listening_sockets sockets)
    : report(std::move(how.report)),
      links(std::move(own_links)),
      services{.plan = std::move(how.plan), .connections = links.get()},
      server(
        std::move(sockets),
        [this](socket_descriptor socket) { return links->from(std::move(socket)); },
        services, {.version = version()}),
      address(to_string(node_address{where.host, server.port()})),
      thread(start_thread(1, [this] {
        server.serve(stop, [this](const std::string& sentence) { tell(sentence); });
      })) {}

  void tell(const std::string& sentence) const {
    if (!report)
      return;
    try {
      report(sentence);
    } catch (...) { // NOLINT(bugprone-empty-catch): the node goes on
    }
  }

  ~state() {
    stop = true;
    thread.join();
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  const std::function<void(const std::string&)> report;
  const std::unique_ptr<node_links> links;
  const worker_services services;
  node_server server;
  const std::string address;
  std::atomic<bool> stop = false;
  std::thread thread; // last: uses the members above
};

tl::expected<std::unique_ptr<serving_node>, std::string>
serving_node::start(settings how) {
  const auto where = parse_address(how.listen);
  if (!where)
    return tl::unexpected{where.error()};
  if (auto error = plaintext_error(*where, how.tls.has_value(), how.insecure);
      !error.empty())
    return tl::unexpected{error};
  auto links = node_links::from(how.tls);
  if (!links)
    return tl::unexpected{links.error()};
  auto sockets = listen_at(*where);
  if (!sockets)
    return tl::unexpected{sockets.error()};
  return std::unique_ptr<serving_node>{new serving_node{std::make_unique<state>(
    std::move(how), *where, std::move(*links), std::move(*sockets))}};
}

serving_node::serving_node(std::unique_ptr<state> started)
  : state_(std::move(started)) {
  // nop
}

serving_node::~serving_node() = default;

std::string serving_node::address() const {
  return state_->address;
}

} // namespace troupe
