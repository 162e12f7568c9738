// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How actors send and hear: the one place that knows about counting envelopes and about
// what ThreadSanitizer cannot see of CAF. Everything that crosses between actors goes
// through tell, post and hear.

#include "actors/mail/envelope_text.hpp"
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

/// Counts the envelopes of a run: all that were sent, how many were under way at once,
/// and the bytes of tensors in them.
class mail_meter {
public:
  void sent() {
    sent_.fetch_add(1, std::memory_order_relaxed);
    const auto now = under_way_.fetch_add(1, std::memory_order_relaxed) + 1;
    auto most = most_.load(std::memory_order_relaxed);
    while (now > most
           && !most_.compare_exchange_weak(most, now, std::memory_order_relaxed))
      continue;
  }

  void heard() { under_way_.fetch_sub(1, std::memory_order_relaxed); }

  void moved(traffic what, std::int64_t bytes) {
    bytes_[static_cast<std::size_t>(what)].fetch_add(bytes, std::memory_order_relaxed);
  }

  std::int64_t bytes(traffic what) const {
    return bytes_[static_cast<std::size_t>(what)];
  }

  /// A message of a sum among data replicas was handled. \param at_work while the
  /// rank's own device computed
  void summed(bool at_work) {
    sums_.fetch_add(1, std::memory_order_relaxed);
    if (at_work)
      sums_at_work_.fetch_add(1, std::memory_order_relaxed);
  }
  std::int64_t sums() const { return sums_; }
  std::int64_t sums_at_work() const { return sums_at_work_; }

  std::int64_t total() const { return sent_; }
  std::int64_t most_at_once() const { return most_; }

  /// Told of each envelope when its receiver opens it, on that actor's thread; for
  /// virtual time, where there is one.
  using listener = std::function<void(const char* receiver, const std::string& what)>;
  void listen(listener told) { told_ = std::move(told); }
  const listener& told() const { return told_; }

private:
  std::atomic<std::int64_t> sent_ = 0;
  std::atomic<std::int64_t> under_way_ = 0;
  std::atomic<std::int64_t> most_ = 0;
  std::array<std::atomic<std::int64_t>, traffic_kinds> bytes_{};
  std::atomic<std::int64_t> sums_ = 0;
  std::atomic<std::int64_t> sums_at_work_ = 0;
  listener told_;
};

namespace detail {

#ifdef TROUPE_TSAN

// CAF's mailboxes hand messages over by atomics inside its library, which is not built
// for ThreadSanitizer: to it every message looks like a race. Here is said what a
// mailbox guarantees: a message is complete before it is enqueued, it is handled after
// that, and the handlers of one actor follow one another.
inline void happens_before(caf::abstract_actor* actor) {
  __tsan_release(actor);
}

inline void happens_after(caf::abstract_actor* actor) {
  __tsan_acquire(actor);
}

template <class Handle, class Message>
void enqueue(caf::strong_actor_ptr sender, const Handle& to, Message&& what,
             caf::execution_unit* context) {
  auto* const receiver = caf::actor_cast<caf::abstract_actor*>(to);
  auto envelope = caf::make_mailbox_element(std::move(sender), caf::make_message_id(),
                                            {}, std::forward<Message>(what));
  happens_before(receiver);
  receiver->enqueue(std::move(envelope), context);
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

/// Sends from inside an actor.
template <class Self, class Handle, class Message>
void tell(Self* self, mail_meter& meter, const Handle& to, Message&& what) {
  meter.sent();
#ifdef TROUPE_TSAN
  detail::enqueue(self->ctrl(), to, std::forward<Message>(what), self->context());
#else
  self->send(to, std::forward<Message>(what));
#endif
}

/// Sends from outside: a device's callback, a clock, the thread that waits for a run.
template <class Handle, class Message>
void post(mail_meter& meter, const Handle& to, Message&& what) {
  meter.sent();
#ifdef TROUPE_TSAN
  detail::enqueue(nullptr, to, std::forward<Message>(what), nullptr);
#else
  caf::anon_send(to, std::forward<Message>(what));
#endif
}

namespace detail {

template <class Self, class F, class Message>
struct heard {
  // CAF makes the handler itself where nothing can be said of the order.
  __attribute__((no_sanitize("thread"))) void operator()(const Message& what) const {
    auto* const me = self;
    happens_after(me);
    meter->heard();
    if (meter->told())
      meter->told()(me->name(), envelope_text(what));
    const auto handle = handler;
    handle(what);
    happens_before(me);
  }

  Self* self;
  mail_meter* meter;
  F handler;
};

} // namespace detail

namespace detail {

template <class Self, class F, class Message>
struct taken {
  __attribute__((no_sanitize("thread"))) void operator()(Message& what) const {
    auto* const me = self;
    happens_after(me);
    meter->heard();
    const auto handle = handler;
    handle(std::move(what));
    happens_before(me);
  }

  Self* self;
  mail_meter* meter;
  F handler;
};

} // namespace detail

/// A message handler that takes all that the message holds, from a lambda
/// `[self](Message)`: of a buffer no handle stays behind in the mailbox.
template <class Message, class Self, class F>
auto take(Self* self, mail_meter& meter, F handler) {
  detail::happens_before(self);
  return detail::taken<Self, F, Message>{self, &meter, handler};
}

/// A message handler from a lambda `[self](const Message&)`.
template <class Self, class F>
auto hear(Self* self, mail_meter& meter, F handler) {
  detail::happens_before(self); // what the actor has done to begin with
  return detail::heard<Self, F, typename detail::argument_of<F>::type>{self, &meter,
                                                                       handler};
}

} // namespace troupe
