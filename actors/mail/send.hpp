// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Sends and receives the messages of actors. This is the one place that counts
// messages, and that declares the order of messages to ThreadSanitizer, which cannot
// see the order inside CAF. All messages between actors go through the functions below,
// except exit messages and messages that user relays send.

#include "actors/mail/message_text.hpp"
#include "messaging/mail/traffic.hpp"

#include <caf/actor_cast.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/send.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#ifdef TROUPE_TSAN
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace troupe {

/// Counts the messages that the functions below send, the largest number under way at
/// the same time, and the bytes of tensors by traffic. Thread-safe, except for
/// listen().
class message_meter {
public:
  /// Counts a message that is sent; handled() notes that the receiver handles the
  /// message.
  void sent() {
    sent_.fetch_add(1, std::memory_order_relaxed);
    const auto now = under_way_.fetch_add(1, std::memory_order_relaxed) + 1;
    auto most = most_.load(std::memory_order_relaxed);
    while (now > most
           && !most_.compare_exchange_weak(most, now, std::memory_order_relaxed))
      continue;
  }

  void handled() { under_way_.fetch_sub(1, std::memory_order_relaxed); }

  /// Counts bytes of a tensor message.
  void moved(traffic kind, std::int64_t bytes) {
    bytes_[static_cast<std::size_t>(kind)].fetch_add(bytes, std::memory_order_relaxed);
  }

  std::int64_t bytes(traffic kind) const {
    return bytes_[static_cast<std::size_t>(kind)];
  }

  /// Counts a handled message of a sum among data replicas (meeting_kind::sums).
  /// \param at_work true if the rank's own device computed when the message was handled
  void summed(bool at_work) {
    sums_.fetch_add(1, std::memory_order_relaxed);
    if (at_work)
      sums_at_work_.fetch_add(1, std::memory_order_relaxed);
  }
  std::int64_t sums() const { return sums_; }
  std::int64_t sums_at_work() const { return sums_at_work_; }

  std::int64_t total() const { return sent_; } ///< Number of messages sent.
  /// Largest number of messages that were sent and not yet handled.
  std::int64_t most_at_once() const { return most_; }

  /// Called with the receiver's name and the message's text when an actor handles a
  /// message, on that actor's thread. A handler by on_owned_message() does not call the
  /// listener. Only for virtual time, where all actors share one thread.
  using listener = std::function<void(const char* receiver, const std::string& text)>;
  /// Sets the listener.
  /// \pre no message has been sent
  void listen(listener callback) { observer_ = std::move(callback); }
  const listener& observer() const { return observer_; }

private:
  std::atomic<std::int64_t> sent_ = 0;
  std::atomic<std::int64_t> under_way_ = 0;
  std::atomic<std::int64_t> most_ = 0;
  std::array<std::atomic<std::int64_t>, traffic_kinds> bytes_{};
  std::atomic<std::int64_t> sums_ = 0;
  std::atomic<std::int64_t> sums_at_work_ = 0;
  listener observer_;
};

namespace detail {

#ifdef TROUPE_TSAN

// CAF's mailboxes pass messages by atomics inside CAF's library, which is not built for
// ThreadSanitizer. ThreadSanitizer would report a race for every message. The functions
// below state the guarantees of a mailbox. A message is complete before the mailbox
// enqueues the message, and is handled after that. The handlers of one actor follow one
// another.
inline void happens_before(caf::abstract_actor* actor) {
  __tsan_release(actor);
}

inline void happens_after(caf::abstract_actor* actor) {
  __tsan_acquire(actor);
}

template <class Handle, class Message>
void enqueue(caf::strong_actor_ptr sender, const Handle& to, Message&& message,
             caf::execution_unit* context) {
  auto* const receiver = caf::actor_cast<caf::abstract_actor*>(to);
  auto element = caf::make_mailbox_element(std::move(sender), caf::make_message_id(),
                                           {}, std::forward<Message>(message));
  happens_before(receiver);
  receiver->enqueue(std::move(element), context);
}

#else

inline void happens_before(caf::abstract_actor*) {
  // nop
}

inline void happens_after(caf::abstract_actor*) {
  // nop
}

#endif

template <class F>
struct argument_of : argument_of<decltype(&F::operator())> {};

template <class F, class Message>
struct argument_of<void (F::*)(const Message&) const> {
  using type = Message;
};

} // namespace detail

/// Sends a message from inside an actor, and counts the message.
template <class Self, class Handle, class Message>
void send_from(Self* self, message_meter& meter, const Handle& to, Message&& message) {
  meter.sent();
#ifdef TROUPE_TSAN
  detail::enqueue(self->ctrl(), to, std::forward<Message>(message), self->context());
#else
  self->send(to, std::forward<Message>(message));
#endif
}

/// Sends a message from outside an actor, and counts the message. Senders are callbacks
/// of devices, clocks, and the thread that waits for a run.
template <class Handle, class Message>
void send_external(message_meter& meter, const Handle& to, Message&& message) {
  meter.sent();
#ifdef TROUPE_TSAN
  detail::enqueue(nullptr, to, std::forward<Message>(message), nullptr);
#else
  caf::anon_send(to, std::forward<Message>(message));
#endif
}

namespace detail {

template <class Self, class F, class Message>
struct const_message_handler {
  // CAF constructs the handler at a point where no order can be declared.
  __attribute__((no_sanitize("thread"))) void operator()(const Message& message) const {
    auto* const me = self;
    happens_after(me);
    meter->handled();
    if (meter->observer())
      meter->observer()(me->name(), envelope_text(message));
    const auto handle = handler;
    handle(message);
    happens_before(me);
  }

  Self* self;
  message_meter* meter;
  F handler;
};

} // namespace detail

namespace detail {

template <class Self, class F, class Message>
struct owned_message_handler {
  __attribute__((no_sanitize("thread"))) void operator()(Message& message) const {
    auto* const me = self;
    happens_after(me);
    meter->handled();
    const auto handle = handler;
    handle(std::move(message));
    happens_before(me);
  }

  Self* self;
  message_meter* meter;
  F handler;
};

} // namespace detail

/// A message handler from a lambda `[self](Message)`, which receives the message's
/// content by move: no handle of a buffer remains in the mailbox. The handler does not
/// call the listener of the meter; the lambda may do so.
/// \param meter outlives the actor
template <class Message, class Self, class F>
auto on_owned_message(Self* self, message_meter& meter, F handler) {
  detail::happens_before(self);
  return detail::owned_message_handler<Self, F, Message>{self, &meter, handler};
}

/// A message handler from a lambda `[self](const Message&)`. Calls the listener of the
/// meter, if there is one, before the lambda.
/// \param meter outlives the actor
template <class Self, class F>
auto on_message(Self* self, message_meter& meter, F handler) {
  detail::happens_before(self); // orders the actor's initialisation before handlers
  return detail::const_message_handler<Self, F, typename detail::argument_of<F>::type>{
    self, &meter, handler};
}

} // namespace troupe
