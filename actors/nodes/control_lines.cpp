// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/control_lines.hpp"

#include "actors/mail/send.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/exit_reason.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#ifdef TROUPE_ASAN
// A multiplexer that ends just after a broker leaks the broker's socket: a few hundred
// bytes, once in the life of a process. This leak is CAF's, not ours.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char*
__lsan_default_suppressions() { // NOLINT(bugprone-reserved-identifier)
  return "leak:caf::io::network::default_multiplexer::new_scribe\n";
}
#endif

namespace troupe {

namespace {

struct frame_to_send {
  control_frame frame;
};

struct end_of_line {};

/// The other side does not read.
struct unread_line {};

/// Bytes of frames that wait to be sent on a line. A run's control messages are far
/// fewer than the limit, unless the receiver has stopped.
class unsent_bytes {
public:
  /// Counts bytes to send. Returns false if the sum exceeds the limit: the line has to
  /// end.
  bool add(std::size_t bytes) { return waiting_.fetch_add(bytes) + bytes <= most_; }
  void remove(std::size_t bytes) { waiting_ -= bytes; }
  void limit(std::size_t bytes) { most_ = bytes; }

private:
  std::atomic<std::size_t> waiting_ = 0;
  std::atomic<std::size_t> most_ = std::size_t{64} << 20;
};

} // namespace

} // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::frame_to_send)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::end_of_line)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::unread_line)

namespace troupe {

namespace {

/// Forwards events to the line's listener, until the line's owner closes the line.
/// Thread-safe.
class listener_gate {
public:
  explicit listener_gate(control_listener listener) : listener_(std::move(listener)) {
    // nop
  }

  void received(control_frame frame) {
    const std::lock_guard guard{lock_};
    if (listener_.received)
      listener_.received(std::move(frame));
  }

  void ended(const std::string& why) {
    const std::lock_guard guard{lock_};
    if (auto callback = std::exchange(listener_.ended, {}))
      callback(why);
  }

  /// No callback is called from now on.
  void close() {
    const std::lock_guard guard{lock_};
    listener_ = {};
  }

private:
  std::recursive_mutex lock_; // a callback may close the line
  control_listener listener_;
};

struct line_state {
  std::string name = "control line";
  caf::io::connection_handle socket;
  std::shared_ptr<listener_gate> listener;
  bool has_begun = false;               // the first bytes have been received
  std::vector<char> header_bytes;       // bytes of a header whose rest comes next
  std::optional<control_header> header; // the header whose text comes next
  std::uint64_t sent = 0, received = 0; // frames
  bool is_closed = false;               // later bytes are ignored
};

using line_broker = caf::stateful_actor<line_state, caf::io::broker>;

void expect(line_broker* self, std::size_t bytes) {
  self->configure_read(self->state.socket, caf::io::receive_policy::exactly(bytes));
}

/// Notifies the listener that the connection has ended, and quits.
void end(line_broker* self) {
  self->state.listener->ended("");
  self->quit();
}

/// Handles the first bytes of a line separately, because another protocol may send less
/// than a header. Returns the error in these bytes, or an empty string.
std::string handle_magic(line_broker* self, const std::vector<char>& bytes) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  self->state.header_bytes = bytes;
  expect(self, sizeof(control_header) - bytes.size());
  return magic_error(magic);
}

/// Handles a header, or the text after a header. Returns the error in the bytes, or an
/// empty string.
std::string handle_bytes(line_broker* self, const std::vector<char>& bytes) {
  auto& state = self->state;
  if (!std::exchange(state.has_begun, true))
    return handle_magic(self, bytes);
  if (!state.header) {
    control_header next;
    state.header_bytes.insert(state.header_bytes.end(), bytes.begin(), bytes.end());
    std::memcpy(&next, state.header_bytes.data(), sizeof next);
    state.header_bytes.clear();
    auto error = header_error(next, state.received);
    if (error.empty()) {
      state.header = next;
      expect(self, next.text_bytes);
    }
    return error;
  }
  const auto header = *std::exchange(state.header, {});
  wire::bytes text{bytes.begin(), bytes.end()};
  if (auto error = text_error(header, text); !error.empty())
    return error;
  expect(self, sizeof(control_header));
  if (header.sequence == state.received) { // else the frame is a repetition
    ++state.received;
    state.listener->received({header.kind, header.generation, std::move(text)});
  }
  return {};
}

caf::behavior line(line_broker* self, int socket,
                   std::shared_ptr<listener_gate> listener,
                   const std::shared_ptr<message_meter>& meter,
                   const std::shared_ptr<unsent_bytes>& unsent) {
  auto& state = self->state;
  state.listener = std::move(listener);
  state.socket = self->add_scribe(socket);
  self->ack_writes(state.socket, true);
  expect(self, sizeof(control_header::magic));
  self->set_exception_handler([self](std::exception_ptr&) -> caf::error {
    self->state.listener->ended("");
    return caf::exit_reason::unhandled_exception;
  });
  return {
    [self, meter = meter.get()](const caf::io::new_data_msg& m) {
      const auto error = self->state.is_closed ? "" : handle_bytes(self, m.buf);
      if (error.empty())
        return;
      self->state.is_closed = true;
      self->state.listener->ended(error);
      send_external(*meter, caf::actor{self}, end_of_line{}); // after the frames that
                                                              // the callback has sent
    },
    [self](const caf::io::connection_closed_msg&) { end(self); },
    [unsent](const caf::io::data_transferred_msg& m) { unsent->remove(m.written); },
    on_message(self, *meter,
               [self](const frame_to_send& f) {
                 const auto header = header_of(f.frame.type, f.frame.generation,
                                               self->state.sent++, f.frame.text);
                 self->write(self->state.socket, sizeof header, &header);
                 self->write(self->state.socket, f.frame.text.size(),
                             f.frame.text.data());
                 self->flush(self->state.socket);
               }),
    on_message(self, *meter, [self](const end_of_line&) { self->quit(); }),
    on_message(self, *meter, [self](const unread_line&) { end(self); }),
  };
}

class line_to_broker : public control_line {
public:
  line_to_broker(caf::actor broker, std::shared_ptr<listener_gate> listener,
                 std::shared_ptr<message_meter> meter,
                 std::shared_ptr<unsent_bytes> unsent)
    : broker_(std::move(broker)),
      listener_(std::move(listener)),
      meter_(std::move(meter)),
      unsent_(std::move(unsent)) {
    // nop
  }
  ~line_to_broker() override { line_to_broker::close(); }

  void send(control_frame frame) override {
    if (unsent_->add(sizeof(control_header) + frame.text.size()))
      send_external(*meter_, broker_, frame_to_send{std::move(frame)});
    else if (!has_overflowed_.exchange(true))
      send_external(*meter_, broker_, unread_line{});
  }
  void limit_unsent(std::size_t bytes) override { unsent_->limit(bytes); }
  void close() override {
    listener_->close();
    send_external(*meter_, broker_, end_of_line{});
  }

private:
  caf::actor broker_;
  std::shared_ptr<listener_gate> listener_;
  std::shared_ptr<message_meter> meter_;
  std::shared_ptr<unsent_bytes> unsent_;
  std::atomic<bool> has_overflowed_ = false;
};

struct middleman_config : caf::actor_system_config {
  middleman_config() {
    load<caf::io::middleman>();
    set("scheduler.policy", caf::atom("sharing")); // brokers run on other threads
    set("scheduler.max-threads", 1);
  }
};

} // namespace

struct control_lines::runtime {
  middleman_config config;
  // Before the system: brokers count bytes until the system has ended.
  std::shared_ptr<message_meter> meter = std::make_shared<message_meter>();
  caf::actor_system system{config};
};

control_lines::control_lines() : runtime_(std::make_unique<runtime>()) {
  // nop
}

control_lines::~control_lines() = default;

std::shared_ptr<control_line> control_lines::add(socket_descriptor socket,
                                                 control_listener listener) {
  auto gate = std::make_shared<listener_gate>(std::move(listener));
  auto unsent = std::make_shared<unsent_bytes>();
  auto broker = runtime_->system.middleman().spawn_broker(line, socket.release(), gate,
                                                          runtime_->meter, unsent);
  return std::make_shared<line_to_broker>(std::move(broker), std::move(gate),
                                          runtime_->meter, std::move(unsent));
}

} // namespace troupe
