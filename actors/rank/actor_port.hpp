// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "actors/mail/directory.hpp"
#include "actors/mail/props.hpp"
#include "actors/mail/ship.hpp"
#include "actors/rank/performer_port.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace troupe {

/// The port of a performer that is an actor: each request of the core becomes a
/// message. The performer's devices call back with messages to the actor.
/// \tparam Handle the actor's own handle type \tparam Port `performer_port`, or an
/// interface with more requests
template <class Handle, class Port = performer_port>
class actor_port : public Port {
public:
  using self_pointer = typename Handle::pointer;

  actor_port(self_pointer self, props shared, performer me, performer_devices devices)
    : self_(self),
      shared_(std::move(shared)),
      me_(me),
      computers_(std::move(devices.computers)),
      sums_(devices.sums) {
    // nop
  }

  void wire(const mail::wiring& w) { everybody_ = w.everybody; }

  /// Keeps `core` for work under way: device callbacks hold a copy, so the core
  /// outlives that work, even if the actor ends first.
  void keep(std::shared_ptr<const void> core) { core_ = std::move(core); }
  const directory& everybody() const { return *everybody_; }
  const props& shared() const { return shared_; }

  template <class To, class Message>
  void tell(const To& to, Message&& what) {
    troupe::tell(self_, *shared_.meter, to, std::forward<Message>(what));
  }

  void arrived(const action& a) override {
    const auto who = of(a);
    tell(everybody_->scheduler_of(who), mail::arrived{a, who});
  }

  void paused(const measured_action& so_far) override {
    const auto who = of(so_far.what);
    tell(everybody_->scheduler_of(who), mail::paused{so_far, who});
  }

  void done(const measured_action& all) override {
    const auto who = of(all.what);
    tell(everybody_->scheduler_of(who), mail::done{all, who});
  }

  void compute(work what, const action& a) override {
    const auto place =
      computers_.size() == 1 ? 0 : static_cast<std::size_t>(a.direction);
    computers_[place]->enqueue(
      std::move(what),
      [meter = shared_.meter, me = Handle{self_}, core = core_, a](const work_end& e) {
        post(*meter, me, mail::ended{a, e.start, e.end, e.failure});
      });
  }

  void sum(asked_sum what) override {
    auto& device = what.what.on != nullptr ? *what.what.on : *sums_;
    device.enqueue(
      {.kind = op_count,
       .stage = me_.where.stage,
       .operations = static_cast<double>(what.what.values),
       .run = std::move(what.what.run)},
      [meter = shared_.meter, me = Handle{self_}, core = core_, to = me_,
       about = what.about, number = what.number,
       check = std::move(what.what.check)](const work_end& end) {
        post(*meter, me,
             mail::letter{to, about, mail::sum_over{number, failure_of(end, check)}});
      });
  }

  /// Whether the first device of the performer is computing arithmetic at this moment.
  bool at_work() const { return computers_.front()->computes(); }

  void send(mail::letter what) override {
    everybody_->to(what.to, [&](const auto& to) {
      if (!what.kind)
        return tell(to, std::move(what));
      const shipment how{*what.kind, what.bytes, me_.where, what.to.where};
      ship(self_, shared_, how, to, std::move(what));
    });
  }

protected:
  /// This performer, on the rank of the action's direction.
  performer of(const action& a) const {
    auto who = me_;
    who.where.direction = a.direction;
    return who;
  }

  self_pointer self_;
  props shared_;
  performer me_;
  std::vector<device*> computers_;
  device* sums_;
  std::shared_ptr<const directory> everybody_;
  std::shared_ptr<const void> core_;
};

/// Passes the end of device work to the core. \throws the exception that the work
/// threw, so the actor ends with that reason
template <class Core>
void hear_end(Core& core, const mail::ended& e) {
  if (e.failure)
    std::rethrow_exception(e.failure);
  core.ended(e);
}

} // namespace troupe
