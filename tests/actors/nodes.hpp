// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/nodes/leader.hpp"
#include "actors/nodes/node_server.hpp"
#include "actors/run/perform.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {

/// Nodes in threads of this process, which run parts of a plan, and a leader with
/// connections to those nodes.
class nodes_here {
public:
  nodes_here(run_plan plan, int count)
    : nodes_here(
      [plan = std::move(plan)](const mail::prepare& facts) {
        auto part = plan;
        part.keep.record = facts.keep.record;
        part.keep.versions = facts.keep.versions;
        part.copies.evaluate_every = facts.keep.evaluate_every;
        part.copies.checkpoint_every = facts.keep.checkpoint_every;
        part.copies.keep_steps = facts.keep.steps;
        part.machine.threads = 1;
        return part;
      },
      count) {
    // nop
  }

  /// \param part makes the plan from a leader's facts
  nodes_here(decltype(worker_services::plan) part, int count) {
    means_ = {.plan = std::move(part), .connections = &plain_};
    for (int i = 0; i < count; ++i) {
      servers_.push_back(std::make_unique<node_server>(
        *listen_at({"127.0.0.1", 0}), plain_stream, means_,
        node_server::settings{.version = "test"}));
      threads_.emplace_back([this, server = servers_.back().get()] {
        server->serve(stop_, [](const std::string&) {});
      });
      cluster_.nodes.push_back({"127.0.0.1", servers_.back()->port()});
    }
    cluster_.version = "test";
    cluster_.connections = &plain_;
  }

  ~nodes_here() {
    stop_ = true;
    for (auto& one : threads_)
      one.join();
  }
  nodes_here(const nodes_here&) = delete;
  nodes_here& operator=(const nodes_here&) = delete;

  cluster& reached_by() { return cluster_; }

  /// Runs a plan on these nodes. \param text of the plan's options
  run_result perform(const run_plan& plan, run_callbacks told = {},
                     const std::string& text = {}) {
    leader others{cluster_, std::make_shared<const run_plan>(plan), {.options = text}};
    return troupe::perform(plan, std::move(told), &others);
  }

private:
  /// Streams of the sockets' bytes, without encryption.
  class in_plain : public connector {
  public:
    std::unique_ptr<byte_stream> to(socket_descriptor socket,
                                    const std::string&) override {
      return plain_stream(std::move(socket));
    }
    std::shared_ptr<control_line> line(std::unique_ptr<byte_stream> stream,
                                       control_listener listener) override {
      return lines_.add(stream->take_socket(), std::move(listener));
    }

  private:
    control_lines lines_;
  };

  in_plain plain_; // before members that use this one
  worker_services means_;
  cluster cluster_;
  std::atomic<bool> stop_ = false;
  std::vector<std::unique_ptr<node_server>> servers_;
  std::vector<std::thread> threads_;
};

} // namespace troupe
