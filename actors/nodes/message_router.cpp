// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/message_router.hpp"

#include "actors/mail/send.hpp"
#include "actors/nodes/receivers.hpp"

#include <concepts>
#include <utility>

namespace troupe {

namespace {

using problem = tl::unexpected<std::string>;

/// Upper bound on a frame's payload: all versions of a stage's data.
std::uint64_t most_payload_bytes(const run_plan& plan) {
  std::uint64_t values = 0;
  for (const auto& l : plan.work->whole.layers)
    values += static_cast<std::uint64_t>(l->bucket() + l->input() + l->output());
  const auto copies = static_cast<std::uint64_t>(plan.dims.stages + 8);
  return values * copies * static_cast<std::uint64_t>(plan.work->batch + 1)
         * sizeof(float);
}

std::span<std::byte> bytes_of(const buffer& b, std::int64_t bytes) {
  void* const first = b.data() != nullptr ? static_cast<void*>(b.data()) : b.integers();
  return {static_cast<std::byte*>(first), static_cast<std::size_t>(bytes)};
}

template <class Message, class Handle>
struct hears;
template <class Message, class... All>
struct hears<Message, caf::typed_actor<All...>>
  : std::bool_constant<(std::same_as<caf::reacts_to<Message>, All> || ...)> {};

} // namespace

message_router::message_router(std::shared_ptr<const run_plan> plan,
                               std::vector<int> nodes, int local_node,
                               session_id session, loss on_loss)
  : plan_(std::move(plan)),
    rules_(plan_),
    nodes_(std::move(nodes)),
    local_node_(local_node),
    session_(session),
    on_loss_(std::move(on_loss)),
    tensors_(session, most_payload_bytes(*plan_), *this) {
  // nop
}

message_router::~message_router() {
  close();
}

void message_router::close() {
  tensors_.close();
  {
    const std::lock_guard guard{lock_};
    lines_.clear();
  }
  {
    const std::unique_lock guard{open_lock_};
    handles_.reset();
    local_run_ = nullptr;
  }
  pending_.clear();
}

void message_router::close_after_actors(local_run& local) {
  {
    const std::unique_lock guard{open_lock_};
    handles_.reset();
  }
  local.shut_down(); // proxies send all queued messages before the end
  close();
}

void message_router::add(int node, std::shared_ptr<control_line> line) {
  const std::lock_guard guard{lock_};
  lines_[node] = std::move(line);
}

void message_router::add(int node, std::unique_ptr<byte_stream> tensors) {
  tensors_.add(node, std::move(tensors));
}

local_run::distant_maker message_router::maker() {
  return [this](caf::actor_system& system, const run_context& shared) {
    return std::make_unique<proxies>(
      system, shared, [this](const wire::address& to, wire::actor_message message) {
        send_message(to, std::move(message));
      });
  };
}

void message_router::open(local_run& local) {
  const std::unique_lock guard{open_lock_};
  handles_ = local.actors().handles();
  local_run_ = &local;
}

int message_router::node_of(const wire::address& receiver) const {
  const int rank = rank_of(*plan_, receiver);
  return rank < 0 ? 0 : nodes_[static_cast<std::size_t>(rank)];
}

void message_router::send_message(const wire::address& to,
                                  wire::actor_message message) {
  auto addressed = std::make_shared<wire::addressed_message>(
    wire::addressed_message{to, std::move(message), {}});
  addressed->tensors = tensor_bytes(*plan_, *addressed);
  const auto buffers = wire::buffers_of(addressed->message);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (!*buffers[i])
      addressed->tensors[i] = 0;
  auto text = wire::encode(*addressed);
  const int node = node_of(to);
  if (!wire::may_have_tensors(addressed->message)) {
    std::shared_ptr<control_line> line;
    {
      const std::lock_guard guard{lock_};
      if (const auto entry = lines_.find(node); entry != lines_.end())
        line = entry->second;
    }
    if (line)
      line->send(control_frame{control_frame::kind::actors, session_.generation,
                               std::move(text)});
    return;
  }
  outgoing_frame frame{.text = std::move(text)};
  std::size_t i = 0;
  for (const auto* tensor : buffers)
    frame.payload.push_back({bytes_of(*tensor, addressed->tensors[i++]), addressed});
  for (const auto* array : wire::arrays_of(addressed->message))
    frame.payload.push_back({std::as_bytes(std::span{*array}), addressed});
  addressed.reset(); // the message's buffers are free as soon as written
  tensors_.send(node, std::move(frame));
}

void message_router::handle(int node, const control_frame& frame) {
  if (frame.generation < session_.generation) {
    ++stale_;
    return;
  }
  tensors_.settle(); // the message may answer a frame on a link: release that frame's
                     // buffers
  auto message = wire::decode_actor_message(frame.text);
  std::string error;
  if (!message)
    error = message.error();
  else if (frame.generation > session_.generation
           || wire::may_have_tensors(message->message))
    error = "it sent a message of a later start of the run, or a message with tensors "
            "on a control line";
  else
    error = rules_.validation_error(*message);
  if (error.empty() && message)
    error = deliver_locally(std::move(*message));
  if (!error.empty())
    on_loss_(node, error);
}

memory_account& message_router::account_of(const wire::addressed_message& message) {
  const int rank = rank_of(*plan_, message.to);
  if (rank < 0)
    return leader_memory_;
  const bool is_meeting_message =
    std::holds_alternative<mail::meeting_message>(message.message);
  return local_run_.load()
    ->resources()
    .ranks()[static_cast<std::size_t>(rank)]
    ->memory.account(is_meeting_message ? memory_use::passing
                                        : memory_use::activations);
}

tl::expected<frame_receiver::areas, std::string>
message_router::place(int peer, frame_kind kind, std::span<const unsigned char> text,
                      std::uint64_t payload_bytes) {
  if (kind == frame_kind::layer) {
    pending_[peer] = {.kind = kind};
    auto* const layers = layers_.load();
    if (layers == nullptr || peer != 0)
      return problem{"it sent values of a layer that this side did not request"};
    const auto destination = layers->buffer_for(text, payload_bytes / sizeof(float));
    if (!destination)
      return problem{destination.error()};
    return areas{std::as_writable_bytes(*destination)};
  }
  auto message = wire::decode_actor_message(text);
  if (!message)
    return problem{message.error()};
  return place_message(peer, std::move(*message), payload_bytes);
}

tl::expected<frame_receiver::areas, std::string>
message_router::place_message(int peer, wire::addressed_message message,
                              std::uint64_t payload_bytes) {
  if (local_run_.load() == nullptr)
    return problem{"it sent a message before the run began"};
  if (!wire::may_have_tensors(message.message))
    return problem{"it sent a message without tensors on a tensor link"};
  if (auto error = rules_.validation_error(message); !error.empty())
    return problem{error};
  if (node_of(message.to) != local_node_)
    return problem{"it sent a message to an actor of another node"};
  auto& entry = pending_[peer] = {.message = std::move(message)};
  const auto& tensors = entry.message.tensors;
  std::uint64_t sum = 0;
  for (const auto bytes : tensors)
    sum += static_cast<std::uint64_t>(bytes);
  if (sum != payload_bytes)
    return problem{"it sent a frame whose size is not the sum of its tensors"};
  const bool integers = std::holds_alternative<labels>(entry.message.message);
  areas result;
  std::size_t i = 0;
  for (auto* const tensor : wire::buffers_of(entry.message.message))
    if (const auto bytes = tensors[i++]; bytes > 0) {
      *tensor = receive_buffers_.acquire(rules_.capacity_of(entry.message, bytes),
                                         account_of(entry.message),
                                         integers ? element::int32 : element::fp32);
      result.push_back(bytes_of(*tensor, bytes));
    }
  for (auto* const array : wire::arrays_of(entry.message.message)) {
    array->resize(static_cast<std::size_t>(tensors[i++]) / sizeof(float));
    result.push_back(std::as_writable_bytes(std::span{*array}));
  }
  return result;
}

std::string message_router::deliver(int peer) {
  auto entry = std::exchange(pending_[peer], {});
  if (entry.kind != frame_kind::layer)
    return deliver_locally(std::move(entry.message));
  layers_.load()->mark_received();
  return {};
}

/// Delivers a message to a local actor. Returns the error in the message, or an empty
/// string.
std::string message_router::deliver_locally(wire::addressed_message addressed) {
  const std::shared_lock open{open_lock_}; // actors last as long as this lock
  const auto& handles = handles_;
  if (!handles)
    return {}; // the run has ended, or has not started
  auto& meter = local_run_.load()->meter();
  std::string error;
  const auto send_to = [&](const auto& to) {
    std::visit(
      [&](auto& content) {
        using message = std::decay_t<decltype(content)>;
        using handle = std::decay_t<decltype(to)>;
        if constexpr (hears<message, handle>::value)
          send_external(meter, to, std::move(content));
        else
          error = "it sent a message of a type that its receiver does not handle";
      },
      addressed.message);
  };
  const auto& to = addressed.to;
  using kind = wire::address::kind;
  switch (to.actor) {
  case kind::coordinator:
    send_to(handles->coordinator);
    break;
  case kind::recorder:
    send_to(handles->recorder);
    break;
  case kind::scheduler:
    send_to(handles->schedulers[static_cast<std::size_t>(to.number)]);
    break;
  case kind::stage:
    send_to(handles->stage(to.where));
    break;
  case kind::optimizer_shard:
    send_to(handles->optimizer(to.where));
    break;
  case kind::expert:
    handles->to({role::expert, to.where, to.number}, send_to);
    break;
  case kind::data_source:
    send_to(handles->data_source(to.where));
    break;
  }
  return error;
}

void message_router::send_layer(int node, std::vector<unsigned char> text,
                                std::shared_ptr<const std::vector<float>> values) {
  outgoing_frame frame{.kind = frame_kind::layer, .text = std::move(text)};
  frame.payload.push_back({std::as_bytes(std::span{*values}), values});
  tensors_.send(node, std::move(frame));
}

} // namespace troupe
