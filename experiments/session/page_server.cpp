#include "experiments/session/page_server.hpp"

#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {

namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr auto loopback = "127.0.0.1";
constexpr std::size_t clients = 32; // that are answered at once
// Those who wait for that: each takes a file descriptor, of which a run needs some too.
constexpr std::size_t most_accepted = 64;
// Those who wait to be accepted, which takes none. httplib's own 5 are fewer than a
// browser may ask for at once, and what one too many asks is lost.
constexpr int longest_queue = 256;
// Seconds that a thread waits for a client. Browsers connect ahead, and may ask
// nothing.
constexpr int longest_question = 1;
constexpr int longest_silence = 5; // of one that does not take its answer

std::atomic<bool> serves_for_good = false;

/// Another program may not listen here as well: of httplib's own options that is one.
void reuse_old_addresses(socket_t listening) {
  const int yes = 1;
  setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

/// Signals are for the program's own threads; a client that is gone is none of a run's.
void hear_no_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

/// Threads that answer clients: made where there may be none to have, unlike those of
/// httplib's own pool, which ends the program then.
class answering_threads : public httplib::TaskQueue {
public:
  /// \param stopping outlives it \throws std::system_error if there are no threads
  explicit answering_threads(const std::atomic<bool>& stopping) : stopping_(stopping) {
    try {
      for (std::size_t i = 0; i < clients; ++i)
        threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      shutdown();
      throw;
    }
  }

  /// Waits while too many are accepted.
  void enqueue(std::function<void()> task) override {
    std::unique_lock guard{lock_};
    while (tasks_.size() >= most_accepted && !stopping_)
      room_.wait_for(guard, 20ms);
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  }

  void shutdown() override {
    {
      const std::lock_guard guard{lock_};
      ends_ = true;
    }
    changed_.notify_all();
    for (auto& one : threads_)
      one.join();
    threads_.clear();
  }

private:
  void work() {
    hear_no_signals();
    for (;;) {
      std::unique_lock guard{lock_};
      changed_.wait(guard, [this] { return ends_ || !tasks_.empty(); });
      if (tasks_.empty())
        return;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      room_.notify_one();
      guard.unlock();
      task();
    }
  }

  std::mutex lock_;
  std::condition_variable changed_, room_;
  const std::atomic<bool>& stopping_;
  std::deque<std::function<void()>> tasks_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

/// Makes a server, which would take SIGPIPE away from those who have a use for it.
std::unique_ptr<httplib::Server> new_server() {
  struct sigaction before {};
  sigaction(SIGPIPE, nullptr, &before);
  auto result = std::make_unique<httplib::Server>();
  sigaction(SIGPIPE, &before, nullptr);
  return result;
}

} // namespace

struct page_server::state {
  struct text {
    std::shared_ptr<const std::string> content;
    std::string type;
  };

  std::unique_ptr<httplib::Server> server = new_server();
  socket_t listening = -1; // httplib's
  int port = 0;
  std::thread thread;
  std::future<void> ended; // the thread's work
  mutable std::mutex lock;
  std::map<std::string, text> texts;          // by path
  std::atomic<steady::time_point> asked_at{}; // last
  std::atomic<bool> stopping = false;

  bool is_for_us(const httplib::Request& asked) const {
    if (asked.get_header_value_count("Host") != 1)
      return false;
    auto host = asked.get_header_value("Host");
    std::ranges::transform(host, host.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
    const auto at = ":" + std::to_string(port);
    return host == loopback + at || host == "localhost" + at
           || (port == 80 && (host == loopback || host == "localhost"));
  }

  httplib::Server::HandlerResponse answer(const httplib::Request& asked,
                                          httplib::Response& to);
};

/// To every request, before httplib looks for anything else to do with it.
httplib::Server::HandlerResponse
page_server::state::answer(const httplib::Request& asked, httplib::Response& to) {
  constexpr auto done = httplib::Server::HandlerResponse::Handled;
  const auto refuse = [&](int status, const char* why) {
    to.status = status;
    to.set_content(std::string{why} + "\n", "text/plain");
    return done;
  };
  if (!is_for_us(asked))
    return refuse(403, "This is served to this machine alone, by its own name.");
  if (asked.method != "GET" && asked.method != "HEAD") {
    to.set_header("Allow", "GET, HEAD");
    return refuse(405, "Only GET and HEAD are known here.");
  }
  asked_at = steady::now();
  std::shared_ptr<const std::string> content;
  std::string type;
  {
    const std::lock_guard guard{lock};
    if (const auto found = texts.find(asked.path); found != texts.end()) {
      content = found->second.content;
      type = found->second.type;
    }
  }
  if (!content)
    return refuse(404, "There is nothing here.");
  to.status = 200;
  to.set_content_provider(
    content->size(), type.c_str(),
    [this, content](std::size_t from, std::size_t count, httplib::DataSink& sink) {
      constexpr std::size_t piece = 1U << 16U;
      return !stopping && sink.write(content->data() + from, std::min(count, piece));
    });
  return done;
}

tl::expected<std::unique_ptr<page_server>, std::string> page_server::at(int port) {
  const auto all = std::make_shared<state>();
  auto& server = *all->server;
  server.set_socket_options([&listening = all->listening](socket_t made) {
    reuse_old_addresses(made);
    listening = made;
  });
  server.set_keep_alive_max_count(1); // who waits for nothing holds no thread
  server.set_read_timeout(longest_question);
  server.set_keep_alive_timeout(longest_question); // until the first byte
  server.set_write_timeout(longest_silence);
  server.set_payload_max_length(0);
  server.set_default_headers({{"Cache-Control", "no-store"},
                              {"X-Content-Type-Options", "nosniff"},
                              {"Cross-Origin-Resource-Policy", "same-origin"},
                              {"Content-Security-Policy", "frame-ancestors 'none'"}});
  server.set_pre_routing_handler(
    [state = all.get()](const httplib::Request& asked, httplib::Response& to) {
      return state->answer(asked, to);
    });
  errno = 0;
  all->port = port == 0                             ? server.bind_to_any_port(loopback)
              : server.bind_to_port(loopback, port) ? port
                                                    : -1;
  if (all->port < 0)
    return tl::unexpected{"cannot listen at port " + std::to_string(port)
                          + " of this machine: "
                          + std::error_code{errno, std::generic_category()}.message()
                          + "; name another, or none for any that is free"};
  (void)::listen(all->listening, longest_queue); // else it is httplib's
  std::promise<void> end;
  all->ended = end.get_future();
  std::unique_ptr<answering_threads> threads;
  const auto taken = std::make_shared<std::atomic<bool>>(false); // httplib deletes them
  try {
    threads = std::make_unique<answering_threads>(all->stopping);
    server.new_task_queue = [taken, made = threads.get()] {
      *taken = true;
      return made;
    };
    all->thread = std::thread{[all, end = std::move(end)]() mutable {
      hear_no_signals();
      all->server->listen_after_bind();
      end.set_value();
    }};
  } catch (const std::system_error& wrong) {
    if (threads)
      threads->shutdown();
    return tl::unexpected{std::string{"cannot start a thread that serves: "}
                          + wrong.what()};
  }
  const auto has_ended = [&] {
    return all->ended.wait_for(1ms) == std::future_status::ready;
  };
  while (!*taken && !has_ended()) {
  }
  if (*taken) {
    threads.release(); // NOLINT(bugprone-unused-return-value): httplib has them
  } else {
    all->thread.join();
    threads->shutdown();
    return tl::unexpected{"cannot serve at port " + std::to_string(all->port)
                          + ": nothing can be taken from it"};
  }
  return std::unique_ptr<page_server>{new page_server{all}};
}

// Whoever is at work for a client that is slow on purpose has the state as long as that
// takes.
page_server::~page_server() {
  state_->stopping = true;
  state_->server->stop();
  if (state_->ended.wait_for(1s) == std::future_status::ready) {
    state_->thread.join();
  } else {
    serves_for_good = true;
    state_->thread.detach();
  }
}

std::string page_server::address() const {
  return "http://" + std::string{loopback} + ":" + std::to_string(state_->port) + "/";
}

void page_server::put(const std::string& path, std::string text,
                      const std::string& type) {
  auto content = std::make_shared<const std::string>(std::move(text));
  const std::lock_guard guard{state_->lock};
  state_->texts[path] = {std::move(content), type};
}

bool page_server::is_read(std::chrono::milliseconds within) const {
  const auto last = state_->asked_at.load();
  return last != steady::time_point{} && steady::now() - last < within;
}

bool is_serving_for_good() {
  return serves_for_good;
}

} // namespace troupe
