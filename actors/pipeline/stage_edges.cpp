// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/stage_edges.hpp"

#include "schedules/action.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {

namespace {

constexpr int giver_of_two = 0, taker_of_two = 1;

work work_for(const tensor_header& header) {
  return {.kind = op_count,
          .stage = header.stage,
          .microbatch = header.microbatch,
          .run = {}};
}

void exchange(communicator& by, transfer::way how, int other, const buffer& payload,
              const tensor_header& of) {
  const transfer one{how, other, payload.data(), of.samples * of.values};
  by.exchange({&one, 1});
}

/// Enqueues a work on the group's device.
/// \param failed called with the error if the work or the communicator fails
/// \param on_complete called when the work has ended without error; may be empty
void enqueue(const gpu_group& on, work what, const stage_edges::failure_teller& failed,
             std::function<void()> over = {}) {
  on.launches->enqueue(
    std::move(what), [by = on.by, failed, over = std::move(over)](const work_end& end) {
      if (auto failure = failure_of(end, [by] { by->check(); }))
        failed(std::move(failure));
      else if (over)
        over();
    });
}

} // namespace

// A work holds the payload's buffer until the work is launched, and not until the work
// has ended: the pool needs the buffer earlier. The next writer of the buffer waits for
// the work on the GPU.

template <class Message>
void stage_edges::give(Message what, teller<Message> called) {
  auto& [of, calls] = to_taker<Message>().gives;
  what.header.call = calls++;
  auto sends = work_for(what.header);
  if (what.made)
    sends.inputs.push_back(std::exchange(what.made, {}));
  const auto crossing = std::make_shared<Message>(std::move(what));
  sends.run = [crossing, by = of->by] {
    exchange(*by, transfer::way::send, taker_of_two, crossing->payload,
             crossing->header);
  };
  sends.launched = [crossing, called = std::move(called)](auto end) {
    std::exchange(crossing->payload, buffer{}).read_until(end);
    crossing->made = std::move(end);
    called(std::move(*crossing));
  };
  enqueue(*of, std::move(sends), failed_);
}

template <class Message>
void stage_edges::take(const Message& call, teller<Message> there) {
  auto& side = to_giver<Message>();
  auto& [of, calls] = side.takes;
  if (of == nullptr || call.header.call != calls)
    throw std::logic_error{
      "stage " + std::to_string(call.header.stage) + " is called to take tensor "
      + std::to_string(call.header.call) + " of microbatch "
      + std::to_string(call.header.microbatch)
      + (of == nullptr ? ", and its GPU takes none"
                       : ", and the next one is " + std::to_string(calls))};
  ++calls;
  const auto crossing =
    std::make_shared<Message>(Message{call.header, side.room->acquire()});
  crossing->header.call = tensor_header::no_call;
  auto takes = work_for(call.header);
  if (auto reader = crossing->payload.take_reader())
    takes.inputs.push_back(std::move(reader));
  takes.run = [crossing, by = of->by] {
    exchange(*by, transfer::way::receive, giver_of_two, crossing->payload,
             crossing->header);
  };
  takes.launched = [crossing, giver = call.made, at_launch = side.at_launch,
                    there](auto end) {
    if (giver)
      end->takes_from(giver);
    if (!at_launch)
      return;
    crossing->made = std::move(end);
    there(std::move(*crossing));
  };
  enqueue(
    *of, std::move(takes), failed_,
    side.at_launch ? std::function<void()>{}
                   : [crossing, there] { there(std::move(*crossing)); });
}

void stage_edges::check() const {
  for (const auto* const side : {&all_.below, &all_.above})
    if (side->takes.of != nullptr && side->at_launch)
      side->takes.of->by->check();
}

template void stage_edges::give(activation, teller<activation>);
template void stage_edges::give(gradient, teller<gradient>);
template void stage_edges::take(const activation&, teller<activation>);
template void stage_edges::take(const gradient&, teller<gradient>);

} // namespace troupe
