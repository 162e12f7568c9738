// SPDX-License-Identifier: BSD-3-Clause
#include "actors/pipeline/stage_channels.hpp"

#include "schedules/action.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace troupe {

namespace {

constexpr int sender_of_two = 0, receiver_of_two = 1;

work work_for(const tensor_header& header) {
  return {.kind = op_count,
          .stage = header.stage,
          .microbatch = header.microbatch,
          .run = {}};
}

void exchange(communicator& channel, transfer::way way, int peer, const buffer& payload,
              const tensor_header& header) {
  const transfer payload_transfer{way, peer, payload.data(),
                                  header.samples * header.values};
  channel.exchange({&payload_transfer, 1});
}

/// Enqueues a work on the group's device.
/// \param failed called with the error if the work or the communicator fails
/// \param on_complete called when the work has ended without error; may be empty
void enqueue(const gpu_group& group, work transfer_work,
             const stage_channels::failure_handler& failed,
             std::function<void()> on_complete = {}) {
  group.launches->enqueue(std::move(transfer_work),
                          [group_communicator = group.group_communicator, failed,
                           on_complete = std::move(on_complete)](const work_end& end) {
                            if (auto failure = failure_of(end, [group_communicator] {
                                  group_communicator->check();
                                }))
                              failed(std::move(failure));
                            else if (on_complete)
                              on_complete();
                          });
}

} // namespace

// A work holds the payload's buffer until the work is launched, and not until the work
// has ended: the pool needs the buffer earlier. The next writer of the buffer waits for
// the work on the GPU.

template <class Message>
void stage_channels::send(Message message, message_handler<Message> on_call) {
  auto& [group, calls] = receiver_channels<Message>().outgoing;
  message.header.call = calls++;
  auto send_work = work_for(message.header);
  if (message.pending_write)
    send_work.inputs.push_back(std::exchange(message.pending_write, {}));
  const auto crossing = std::make_shared<Message>(std::move(message));
  send_work.run = [crossing, group_communicator = group->group_communicator] {
    exchange(*group_communicator, transfer::way::send, receiver_of_two,
             crossing->payload, crossing->header);
  };
  send_work.launched = [crossing, on_call = std::move(on_call)](auto end) {
    std::exchange(crossing->payload, buffer{}).set_reader(end);
    crossing->pending_write = std::move(end);
    on_call(std::move(*crossing));
  };
  enqueue(*group, std::move(send_work), failed_);
}

template <class Message>
void stage_channels::receive(const Message& call,
                             message_handler<Message> on_received) {
  auto& side = sender_channels<Message>();
  auto& [group, calls] = side.incoming;
  if (group == nullptr || call.header.call != calls)
    throw std::logic_error{
      "stage " + std::to_string(call.header.stage) + " is called to receive tensor "
      + std::to_string(call.header.call) + " of microbatch "
      + std::to_string(call.header.microbatch)
      + (group == nullptr ? ", but its GPU receives no tensors directly"
                          : ", but the next tensor is " + std::to_string(calls))};
  ++calls;
  const auto crossing =
    std::make_shared<Message>(Message{call.header, side.buffers->acquire()});
  crossing->header.call = tensor_header::no_call;
  auto receive_work = work_for(call.header);
  if (auto reader = crossing->payload.take_reader())
    receive_work.inputs.push_back(std::move(reader));
  receive_work.run = [crossing, group_communicator = group->group_communicator] {
    exchange(*group_communicator, transfer::way::receive, sender_of_two,
             crossing->payload, crossing->header);
  };
  receive_work.launched = [crossing, sender = call.pending_write,
                           at_launch = side.at_launch, on_received](auto end) {
    if (sender)
      end->receives_from(sender);
    if (!at_launch)
      return;
    crossing->pending_write = std::move(end);
    on_received(std::move(*crossing));
  };
  enqueue(
    *group, std::move(receive_work), failed_,
    side.at_launch ? std::function<void()>{}
                   : [crossing, on_received] { on_received(std::move(*crossing)); });
}

void stage_channels::check() const {
  for (const auto* const side : {&channels_.below, &channels_.above})
    if (side->incoming.group != nullptr && side->at_launch)
      side->incoming.group->group_communicator->check();
}

template void stage_channels::send(activation, message_handler<activation>);
template void stage_channels::send(gradient, message_handler<gradient>);
template void stage_channels::receive(const activation&, message_handler<activation>);
template void stage_channels::receive(const gradient&, message_handler<gradient>);

} // namespace troupe
