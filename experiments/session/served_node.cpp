// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/served_node.hpp"

#include "actors/nodes/node_links.hpp"
#include "actors/nodes/node_server.hpp"
#include "experiments/options/parsing.hpp"
#include "experiments/options/run_options.hpp"
#include "experiments/session/node_part.hpp"
#include "kernels/threads.hpp"
#include "kernels/version.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

namespace troupe {

struct served_node::state {
  state(own_parts parts, node_limits allowed, const node_address& where,
        std::unique_ptr<node_links> own_links, listening_sockets sockets)
    : own(std::move(parts)),
      limits(std::move(allowed)),
      links(std::move(own_links)),
      services{.plan =
                 [this](const mail::prepare& facts) {
                   return plan_of_part(facts, limits, own);
                 },
               .connections = links.get()},
      server(
        std::move(sockets),
        [this](socket_descriptor socket) { return links->from(std::move(socket)); },
        services, {.version = version()}),
      address(to_string(node_address{where.host, server.port()})),
      thread(start_thread(
        1, [this] { server.serve(stop, [](const std::string&) { /* nop */ }); })) {}

  ~state() {
    stop = true;
    thread.join();
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  const own_parts own;
  const node_limits limits;
  const std::unique_ptr<node_links> links;
  const worker_services services;
  node_server server;
  const std::string address;
  std::atomic<bool> stop = false;
  std::thread thread; // last: uses the members above
};

tl::expected<std::unique_ptr<served_node>, std::string>
served_node::start(own_parts own, const served_settings& settings) {
  using problem = tl::unexpected<std::string>;
  const auto where = parse_address(settings.listen);
  if (!where)
    return problem{where.error()};
  std::optional<tls_files> files;
  if (!settings.tls.empty()) {
    auto named = parse_tls(settings.tls);
    if (!named)
      return problem{named.error()};
    files = std::move(*named);
  }
  if (auto error = plaintext_error(*where, files.has_value(), settings.insecure);
      !error.empty())
    return problem{error};
  auto links = node_links::from(files);
  if (!links)
    return problem{links.error()};
  auto sockets = listen_at(*where);
  if (!sockets)
    return problem{sockets.error()};
  const int cores = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U));
  node_limits limits{.threads = settings.threads > 0 ? settings.threads : cores,
                     .folder = settings.folder};
  return std::unique_ptr<served_node>{
    new served_node{std::make_unique<state>(std::move(own), std::move(limits), *where,
                                            std::move(*links), std::move(*sockets))}};
}

served_node::served_node(std::unique_ptr<state> started) : state_(std::move(started)) {
  // nop
}

served_node::~served_node() = default;

std::string served_node::address() const {
  return state_ ? state_->address : "";
}

void served_node::end() {
  state_.reset();
}

} // namespace troupe
