// SPDX-License-Identifier: BSD-3-Clause
#include "actors/embedding/training_node.hpp"

#include "actors/embedding/job_plan.hpp"
#include "actors/nodes/node_links.hpp"
#include "actors/nodes/node_server.hpp"
#include "kernels/threads.hpp"
#include "kernels/version.hpp"

#include <atomic>
#include <thread>
#include <utility>

namespace troupe {

struct training_node::state {
  state(job_of_node planned, const node_settings& settings, const node_address& where,
        std::unique_ptr<node_links> own_links, listening_sockets sockets)
    : job(std::move(planned)),
      report(settings.report),
      links(std::move(own_links)),
      services{
        .plan = [this](const mail::prepare& facts) { return plan_of_part(job, facts); },
        .connections = links.get()},
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

  const job_of_node job;
  const std::function<void(const std::string&)> report;
  const std::unique_ptr<node_links> links;
  const worker_services services;
  node_server server;
  const std::string address;
  std::atomic<bool> stop = false;
  std::thread thread; // last: uses the members above
};

tl::expected<std::unique_ptr<training_node>, std::string>
training_node::start(training_job job, const node_settings& settings) {
  auto planned = plan_on_node(std::move(job));
  if (!planned)
    return tl::unexpected{planned.error()};
  const auto where = parse_address(settings.listen);
  if (!where)
    return tl::unexpected{where.error()};
  if (auto error = plaintext_error(*where, settings.tls.has_value(), settings.insecure);
      !error.empty())
    return tl::unexpected{error};
  auto links = node_links::from(settings.tls);
  if (!links)
    return tl::unexpected{links.error()};
  auto sockets = listen_at(*where);
  if (!sockets)
    return tl::unexpected{sockets.error()};
  return std::unique_ptr<training_node>{new training_node{std::make_unique<state>(
    std::move(*planned), settings, *where, std::move(*links), std::move(*sockets))}};
}

training_node::training_node(std::unique_ptr<state> started)
  : state_(std::move(started)) {
  // nop
}

training_node::~training_node() = default;

std::string training_node::address() const {
  return state_->address;
}

} // namespace troupe
