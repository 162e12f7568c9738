// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/session/http_texts.hpp"

#include <httplib.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace troupe {

namespace {

using steady = std::chrono::steady_clock;

/// A stream over a request in memory, which collects the bytes of the answer.
class memory_stream : public httplib::Stream {
public:
  explicit memory_stream(std::string request) : request_(std::move(request)) {
    // nop
  }

  std::string take_answer() { return std::move(answer_); }

  // Versions of cpp-httplib have different functions: none is marked as an override.
  bool is_readable() const { return position_ < request_.size(); }
  bool is_writable() const { return true; }
  bool wait_readable() const { return true; }
  bool wait_writable() const { return true; }
  time_t duration() const { return 0; }
  ssize_t read(char* to, std::size_t size) {
    const auto count = request_.copy(to, size, position_);
    position_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, std::size_t size) {
    answer_.append(from, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const {}
  void get_local_ip_and_port(std::string&, int&) const {}
  socket_t socket() const { return INVALID_SOCKET; }

private:
  std::string request_, answer_;
  std::size_t position_ = 0; // of the request
};

/// Removes Range fields from a request: this server ignores such fields, and
/// cpp-httplib refuses some.
std::string without_ranges(std::string_view received) {
  constexpr std::string_view name = "range:";
  std::string result;
  while (!received.empty()) {
    const auto end = std::min(received.find('\n'), received.size() - 1);
    const auto line = received.substr(0, end + 1);
    const bool is_range = line.size() >= name.size() && !result.empty()
                          && strncasecmp(line.data(), name.data(), name.size()) == 0;
    if (!is_range)
      result += line;
    received.remove_prefix(line.size());
  }
  return result;
}

} // namespace

/// A server that never listens, and answers requests in memory.
class http_texts::server : public httplib::Server {
public:
  explicit server(int port) : port_(port) {
    set_default_headers({{"Accept-Ranges", "none"},
                         {"Cache-Control", "no-store"},
                         {"X-Content-Type-Options", "nosniff"},
                         {"Cross-Origin-Resource-Policy", "same-origin"},
                         {"Content-Security-Policy", "frame-ancestors 'none'"}});
    set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& to) {
        respond(request, to);
        return HandlerResponse::Handled;
      });
  }

  void put(const std::string& path, std::string text, const std::string& type) {
    auto content = std::make_shared<const std::string>(std::move(text));
    const std::lock_guard guard{lock_};
    texts_[path] = {std::move(content), type};
  }

  http_answer answer(std::string_view received) {
    memory_stream stream{without_ranges(received)};
    body_.reset();
    process(*this, stream);
    return {stream.take_answer(), std::exchange(body_, nullptr)};
  }

  bool is_read(std::chrono::milliseconds time) const {
    const auto last = requested_at_.load();
    return last != steady::time_point{} && steady::now() - last < time;
  }

private:
  struct entry {
    std::shared_ptr<const std::string> content;
    std::string type;
  };

  /// Calls process_request of the present version of cpp-httplib; since 0.18 the
  /// function takes addresses.
  static void process(auto& self, memory_stream& stream) {
    bool closes = true;
    const std::function<void(httplib::Request&)> setup;
    const std::string address;
    if constexpr (requires { self.process_request(stream, true, closes, setup); })
      self.process_request(stream, true, closes, setup);
    else
      self.process_request(stream, address, 0, address, 0, true, closes, setup);
  }

  bool is_for_this_machine(const httplib::Request& request) const;
  void respond(const httplib::Request& request, httplib::Response& to);

  int port_;
  std::mutex lock_;
  std::map<std::string, entry> texts_; // by path
  std::atomic<steady::time_point> requested_at_{};
  std::shared_ptr<const std::string> body_; // of the answer that is being made
};

bool http_texts::server::is_for_this_machine(const httplib::Request& request) const {
  if (request.get_header_value_count("Host") != 1)
    return false;
  const auto host = request.get_header_value("Host");
  const auto port = ":" + std::to_string(port_);
  return std::ranges::any_of(std::array{"127.0.0.1", "localhost"}, [&](auto* name) {
    return strcasecmp(host.c_str(), (name + port).c_str()) == 0
           || (port_ == 80 && strcasecmp(host.c_str(), name) == 0);
  });
}

/// Responds to a request that cpp-httplib accepts. cpp-httplib writes the head of a
/// text alone, as it would copy a body for each client. Before 0.15 a range that is too
/// long would also send the memory after a body.
void http_texts::server::respond(const httplib::Request& request,
                                 httplib::Response& to) {
  const auto refuse = [&](int status, const std::string& why) {
    to.status = status;
    to.set_content(why + "\n", "text/plain");
  };
  if (!is_for_this_machine(request))
    return refuse(
      403, "Use http://127.0.0.1 or http://localhost with this port, on this machine.");
  if (request.method != "GET" && request.method != "HEAD") {
    to.set_header("Allow", "GET, HEAD");
    return refuse(405, "Only GET and HEAD are allowed.");
  }
  requested_at_ = steady::now();
  const std::lock_guard guard{lock_};
  const auto match = texts_.find(request.path);
  if (match == texts_.end())
    return refuse(404, "The address has no page.");
  const auto& [content, type] = match->second;
  to.status = 200;
  to.set_header("Content-Type", type);
  to.set_header("Content-Length", std::to_string(content->size()));
  if (request.method == "GET")
    body_ = content;
}

http_texts::http_texts(int port) {
  struct sigaction previous {};
  sigaction(SIGPIPE, nullptr, &previous);
  server_ = std::make_unique<server>(port); // httplib ignores SIGPIPE from here on
  sigaction(SIGPIPE, &previous, nullptr);
}

http_texts::~http_texts() = default;

void http_texts::put(const std::string& path, std::string text,
                     const std::string& type) {
  server_->put(path, std::move(text), type);
}

http_answer http_texts::answer(std::string_view received) {
  try {
    return server_->answer(received);
  } catch (const std::exception&) {
    return {}; // a request must not end a run
  }
}

bool http_texts::is_read(std::chrono::milliseconds time) const {
  return server_->is_read(time);
}

} // namespace troupe
