// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/benchmarks/benchmarks.hpp"
#include "messaging/links/certificates.hpp"
#include "messaging/links/listening_sockets.hpp"
#include "messaging/links/tensor_links.hpp"
#include "messaging/links/tls.hpp"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace troupe {

namespace {

constexpr std::size_t frame_bytes = 1 << 20;
constexpr int frames = 256; // of one measurement

struct pair_of_sockets {
  socket_descriptor near, far;
};

pair_of_sockets connected_pair() {
  auto door = listen_at({"127.0.0.1", 0});
  auto near = connect_to({"127.0.0.1", door->port()}, std::chrono::seconds{1});
  return {std::move(*near), door->accept()};
}

void wait_for(int socket, short events) {
  pollfd polled{.fd = socket, .events = events, .revents = 0};
  (void)poll(&polled, 1, -1);
}

/// Both ends of a TLS connection, after the handshake.
std::pair<std::unique_ptr<byte_stream>, std::unique_ptr<byte_stream>>
shaken(pair_of_sockets sockets, tls_identity& identity) {
  auto near = identity.to_server(std::move(sockets.near), "127.0.0.1");
  auto far = identity.to_client(std::move(sockets.far));
  std::thread far_thread{[&] {
    while (far->shake_hands().outcome != stream_progress::state::moved)
      wait_for(far->socket(), POLLIN);
  }};
  while (near->shake_hands().outcome != stream_progress::state::moved)
    wait_for(near->socket(), POLLIN);
  far_thread.join();
  return {std::move(near), std::move(far)};
}

/// An authority and a certificate for this machine, in files that the destructor
/// removes.
class temporary_identity {
public:
  temporary_identity()
    : folder_(std::filesystem::temp_directory_path()
              / ("troupe-bench-" + std::to_string(getpid()))) {
    std::filesystem::create_directory(folder_);
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
    const auto authority = make_authority(validity::of_days(1));
    const auto host = *make_certificate(authority, "127.0.0.1", validity::of_days(1));
    const tls_files files{write("host.crt", host.certificate),
                          write("host.key", host.key),
                          write("authority.crt", authority.certificate)};
    identity_ = tls_identity::from(files).value();
  }
  ~temporary_identity() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  temporary_identity(const temporary_identity&) = delete;
  temporary_identity& operator=(const temporary_identity&) = delete;

  tls_identity& get() { return *identity_; }

private:
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    auto path = folder_ / name;
    std::ofstream{path} << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_read
                                         | std::filesystem::perms::owner_write);
    return path;
  }

  std::filesystem::path folder_;
  std::shared_ptr<tls_identity> identity_;
};

/// Reads all frames into one buffer, and answers each frame if `answers` is set.
class reader : public frame_receiver {
public:
  reader() : buffer_(frame_bytes) {
    // nop
  }

  tl::expected<areas, std::string>
  place(int, frame_kind, std::span<const unsigned char>, std::uint64_t bytes) override {
    return areas{std::span{buffer_}.first(bytes)};
  }
  std::string deliver(int) override {
    if (answers != nullptr)
      answers->send(1, {});
    {
      const std::lock_guard guard{lock_};
      ++count_;
    }
    news_.notify_one();
    return {};
  }
  void lost(int, const std::string& why) override {
    {
      const std::lock_guard guard{lock_};
      lost_ = why;
    }
    news_.notify_one();
  }

  void wait_for_next(std::int64_t count) {
    std::unique_lock guard{lock_};
    news_.wait(guard, [&] { return count_ >= count || !lost_.empty(); });
    if (!lost_.empty())
      throw std::runtime_error{"a link on this machine was lost: " + lost_};
    count_ -= count;
  }

  tensor_links* answers = nullptr;

private:
  std::vector<std::byte> buffer_;
  std::mutex lock_;
  std::condition_variable news_;
  std::int64_t count_ = 0;
  std::string lost_; // the reason; empty: the link works
};

constexpr session_id any_run{{1, 2}, 1};

/// Two switchboards with one link between the two.
struct linked {
  linked(std::unique_ptr<byte_stream> from, std::unique_ptr<byte_stream> to) {
    near.add(1, std::move(from));
    far.add(1, std::move(to));
  }

  void send_all() {
    for (int i = 0; i < frames; ++i) {
      outgoing_frame outgoing;
      outgoing.payload.push_back({*payload, payload});
      near.send(1, std::move(outgoing));
    }
    at_far.wait_for_next(frames);
  }

  void ping() {
    near.send(1, {});
    at_near.wait_for_next(1);
  }

  std::shared_ptr<std::vector<std::byte>> payload =
    std::make_shared<std::vector<std::byte>>(frame_bytes);
  reader at_near, at_far;
  tensor_links near{any_run, frame_bytes, at_near}, far{any_run, frame_bytes, at_far};
};

/// Sends the same bytes over a plain socket by write and read, with one thread at each
/// end.
void send_raw(const pair_of_sockets& sockets, std::vector<std::byte>& from,
              std::vector<std::byte>& to) {
  const auto total_bytes = frame_bytes * frames;
  std::thread sender{[&] {
    for (std::size_t sent = 0; sent < total_bytes;) {
      const auto n = write(sockets.near.get(), from.data(), frame_bytes);
      if (n > 0)
        sent += static_cast<std::size_t>(n);
      else
        wait_for(sockets.near.get(), POLLOUT);
    }
  }};
  for (std::size_t came = 0; came < total_bytes;) {
    const auto n = read(sockets.far.get(), to.data(), frame_bytes);
    if (n > 0)
      came += static_cast<std::size_t>(n);
    else
      wait_for(sockets.far.get(), POLLIN);
  }
  sender.join();
}

double gigabytes_a_second(double seconds) {
  return static_cast<double>(frame_bytes) * frames / seconds * 1e-9;
}

} // namespace

void measure_links(const benchmark& b) {
  const auto report = [&](const std::string& name, double value,
                          const std::string& unit,
                          std::optional<double> fraction = {}) {
    b.report({"links", name, value, unit, fraction, fraction ? "raw TCP" : ""});
  };
  std::vector<std::byte> from(frame_bytes), to(frame_bytes);
  const auto raw = connected_pair();
  auto sockets = connected_pair();
  linked plain{plain_stream(std::move(sockets.near)),
               plain_stream(std::move(sockets.far))};
  temporary_identity identity;
  auto ends = shaken(connected_pair(), identity.get());
  linked tls{std::move(ends.first), std::move(ends.second)};
  const auto by_plain =
    take_turns([&] { send_raw(raw, from, to); }, [&] { plain.send_all(); }, 2);
  report("raw TCP, 1 MiB", gigabytes_a_second(by_plain.first), "GB/s");
  report("tensor link, frames of 1 MiB", gigabytes_a_second(by_plain.second), "GB/s",
         by_plain.first / by_plain.second);
  const auto by_tls =
    take_turns([&] { send_raw(raw, from, to); }, [&] { tls.send_all(); }, 2);
  report("the same under TLS 1.3", gigabytes_a_second(by_tls.second), "GB/s",
         by_tls.first / by_tls.second);
  plain.at_far.answers = &plain.far;
  tls.at_far.answers = &tls.far;
  const auto pings = take_turns([&] { plain.ping(); }, [&] { tls.ping(); });
  report("a small frame and its answer", pings.first * 1e6, "us");
  report("the same under TLS 1.3", pings.second * 1e6, "us");
}

} // namespace troupe
