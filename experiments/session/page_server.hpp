// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <tl/expected.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace troupe {

/// Serves a few texts by HTTP to browsers on this machine, on a separate thread. The
/// server listens on the loopback interface, answers GET and HEAD, and requires this
/// machine's name in the Host field (localhost or 127.0.0.1). Pages of other sites thus
/// read nothing through a browser. A Range field is ignored: each answer is the whole
/// text.
class page_server {
public:
  /// Starts the server and its thread. The error is one sentence: why the port cannot
  /// be used, or that no thread can start.
  /// \param port 0: any free port
  static tl::expected<std::unique_ptr<page_server>, std::string> open(int port);

  /// Closes all connections, answered or not.
  ~page_server();
  page_server(const page_server&) = delete;
  page_server& operator=(const page_server&) = delete;

  /// The address of the server: "http://127.0.0.1:PORT/".
  std::string address() const;

  /// GET of `path` returns `text` from now on. Any thread may call; no call waits for a
  /// client.
  /// \param type text/html or application/json
  void put(const std::string& path, std::string text, const std::string& type);

  /// True if a GET or HEAD with this machine's name has arrived within the last `time`,
  /// also for an unknown path. Any thread may call.
  bool is_read(std::chrono::milliseconds time) const;

private:
  struct state;
  explicit page_server(std::unique_ptr<state> parts);

  std::unique_ptr<state> state_;
};

} // namespace troupe
