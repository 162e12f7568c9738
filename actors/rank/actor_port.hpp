// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/actor_handles.hpp"
#include "actors/mail/run_context.hpp"
#include "actors/mail/send_tensor.hpp"
#include "actors/rank/performer_port.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace troupe {

/// The port of a performer that is an actor: each request of the core becomes a message
/// or work for a device. The end of device work becomes a message to the actor.
/// \tparam Handle the actor's own handle type
/// \tparam Port `performer_port`, or an interface with more requests
template <class Handle, class Port = performer_port>
class actor_port : public Port {
public:
  using self_pointer = typename Handle::pointer;

  /// \param self the actor that owns this object
  /// \param devices outlive the actor
  actor_port(self_pointer self, run_context shared, performer me,
             performer_devices devices)
    : self_(self),
      shared_(std::move(shared)),
      me_(me),
      computers_(std::move(devices.computers)),
      sums_(devices.sums) {
    // nop
  }

  void wire(const mail::wiring& w) { handles_ = w.handles; }

  /// Keeps `core` for work under way: device callbacks hold a copy, so the core
  /// outlives that work, even if the actor ends first. Called before the first work.
  void keep(std::shared_ptr<const void> core) { core_ = std::move(core); }

  /// \pre wire() has been called; the same holds for all functions that send
  const actor_handles& handles() const { return *handles_; }
  const run_context& shared() const { return shared_; }

  template <class To, class Message>
  void send_to(const To& to, Message&& message) {
    troupe::send_from(self_, *shared_.meter, to, std::forward<Message>(message));
  }

  void arrived(const action& a) override {
    const auto sender = performer_of(a);
    send_to(handles_->scheduler_of(sender), mail::arrived{a, sender});
  }

  void paused(const measured_action& so_far) override {
    const auto sender = performer_of(so_far.action);
    send_to(handles_->scheduler_of(sender), mail::paused{so_far, sender});
  }

  void done(const measured_action& measured) override {
    const auto sender = performer_of(measured.action);
    send_to(handles_->scheduler_of(sender), mail::done{measured, sender});
  }

  void compute(work device_work, const action& a) override {
    const auto index =
      computers_.size() == 1 ? 0 : static_cast<std::size_t>(a.direction);
    computers_[index]->enqueue(
      std::move(device_work),
      [meter = shared_.meter, me = Handle{self_}, core = core_, a](const work_end& e) {
        send_external(*meter, me,
                      mail::ended{a, e.start, e.end, e.failure, e.off_processor_time});
      });
  }

  void sum(requested_sum request) override {
    auto& device =
      request.sum.target_device != nullptr ? *request.sum.target_device : *sums_;
    device.enqueue({.kind = op_count,
                    .stage = me_.where.stage,
                    .operations = static_cast<double>(request.sum.values),
                    .run = std::move(request.sum.run)},
                   [meter = shared_.meter, me = Handle{self_}, core = core_, to = me_,
                    meeting = request.meeting, number = request.number,
                    check = std::move(request.sum.check)](const work_end& end) {
                     send_external(
                       *meter, me,
                       mail::meeting_message{
                         to, meeting, mail::sum_over{number, failure_of(end, check)}});
                   });
  }

  /// True if the first device of the performer is computing arithmetic at this moment.
  bool at_work() const { return computers_.front()->computes(); }

  void send(mail::meeting_message message) override {
    handles_->to(message.to, [&](const auto& to) {
      if (!message.kind)
        return send_to(to, std::move(message));
      const tensor_transfer route{*message.kind, message.bytes, me_.where,
                                  message.to.where};
      send_tensor(self_, shared_, route, to, std::move(message));
    });
  }

protected:
  /// This performer, with the direction of the action.
  performer performer_of(const action& a) const {
    auto result = me_;
    result.where.direction = a.direction;
    return result;
  }

  self_pointer self_;
  run_context shared_;
  performer me_;
  std::vector<device*> computers_;
  device* sums_;
  std::shared_ptr<const actor_handles> handles_;
  std::shared_ptr<const void> core_;
};

/// Passes the end of device work to the core.
/// \throws the exception that the work threw, so the actor ends with that reason; then
/// the core is not called
template <class Core>
void handle_end(Core& core, const mail::ended& e) {
  if (e.failure)
    std::rethrow_exception(e.failure);
  core.ended(e);
}

} // namespace troupe
