// SPDX-License-Identifier: BSD-3-Clause
#include "actors/nodes/mailroom.hpp"

#include "actors/mail/mail.hpp"
#include "actors/nodes/mail_sizes.hpp"

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

/// True for messages that may have tensors. All messages of one kind take the same
/// connection, so the order is kept.
bool has_tensors(const wire::actor_mail& what) {
  if (const auto* letter = std::get_if<mail::letter>(&what)) {
    const auto* const part = std::get_if<collective_message>(&letter->what);
    return letter->kind.has_value() && !(part != nullptr && part->is_call());
  }
  if (const auto* up = std::get_if<activation>(&what))
    return !up->header.is_call();
  if (const auto* down = std::get_if<gradient>(&what))
    return !down->header.is_call();
  return std::holds_alternative<labels>(what)
         || std::holds_alternative<mail::snapshot>(what)
         || std::holds_alternative<mail::collected>(what)
         || std::holds_alternative<mail::saved>(what)
         || std::holds_alternative<mail::recalled>(what)
         || std::holds_alternative<mail::version_made>(what);
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

mailroom::mailroom(std::shared_ptr<const run_plan> plan, std::vector<int> nodes,
                   int own, session_id of, loss lost)
  : plan_(std::move(plan)),
    rules_(plan_),
    nodes_(std::move(nodes)),
    own_(own),
    session_(of),
    lost_(std::move(lost)),
    tensors_(of, most_payload_bytes(*plan_), *this) {
  // nop
}

mailroom::~mailroom() {
  close();
}

void mailroom::close() {
  tensors_.close();
  {
    const std::lock_guard guard{lock_};
    lines_.clear();
  }
  {
    const std::unique_lock guard{open_lock_};
    everybody_.reset();
    here_ = nullptr;
  }
  pending_.clear();
}

void mailroom::close_after_actors(ensemble& here) {
  {
    const std::unique_lock guard{open_lock_};
    everybody_.reset();
  }
  here.come_home(); // proxies send all queued messages before the end
  close();
}

void mailroom::add(int node, std::shared_ptr<control_line> line) {
  const std::lock_guard guard{lock_};
  lines_[node] = std::move(line);
}

void mailroom::add(int node, std::unique_ptr<byte_stream> tensors) {
  tensors_.add(node, std::move(tensors));
}

ensemble::distant_maker mailroom::maker() {
  return [this](caf::actor_system& system, const props& shared) {
    return std::make_unique<proxies>(
      system, shared, [this](const wire::address& to, wire::actor_mail what) {
        carry(to, std::move(what));
      });
  };
}

void mailroom::open(ensemble& here) {
  const std::unique_lock guard{open_lock_};
  everybody_ = here.actors().everybody();
  here_ = &here;
}

int mailroom::node_of(const wire::address& of) const {
  const int rank = rank_of(*plan_, of);
  return rank < 0 ? 0 : nodes_[static_cast<std::size_t>(rank)];
}

void mailroom::carry(const wire::address& to, wire::actor_mail what) {
  auto all = std::make_shared<wire::addressed_mail>(
    wire::addressed_mail{to, std::move(what), {}});
  all->tensors = tensor_bytes(*plan_, *all);
  const auto buffers = wire::buffers_of(all->what);
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (!*buffers[i])
      all->tensors[i] = 0;
  auto text = wire::encode(*all);
  const int node = node_of(to);
  if (!has_tensors(all->what)) {
    std::shared_ptr<control_line> line;
    {
      const std::lock_guard guard{lock_};
      if (const auto found = lines_.find(node); found != lines_.end())
        line = found->second;
    }
    if (line)
      line->send(control_frame{control_frame::kind::actors, session_.generation,
                               std::move(text)});
    return;
  }
  outgoing_frame frame{.text = std::move(text)};
  std::size_t i = 0;
  for (const auto* one : buffers)
    frame.payload.push_back({bytes_of(*one, all->tensors[i++]), all});
  for (const auto* one : wire::arrays_of(all->what))
    frame.payload.push_back({std::as_bytes(std::span{*one}), all});
  all.reset(); // the message's buffers are free as soon as written
  tensors_.send(node, std::move(frame));
}

void mailroom::hear(int node, const control_frame& frame) {
  if (frame.generation < session_.generation) {
    ++stale_;
    return;
  }
  tensors_.settle(); // the message may answer a frame on a link: release that frame's
                     // buffers
  auto mail = wire::decode_mail(frame.text);
  std::string wrong;
  if (!mail)
    wrong = mail.error();
  else if (frame.generation > session_.generation || has_tensors(mail->what))
    wrong = "it sent mail that nobody here expects";
  else
    wrong = rules_.fault_of(*mail);
  if (wrong.empty() && mail)
    wrong = post_here(std::move(*mail));
  if (!wrong.empty())
    lost_(node, wrong);
}

memory_account& mailroom::account_of(const wire::addressed_mail& mail) {
  const int rank = rank_of(*plan_, mail.to);
  if (rank < 0)
    return own_memory_;
  const bool letter = std::holds_alternative<mail::letter>(mail.what);
  return here_.load()->equipped().ranks()[static_cast<std::size_t>(rank)]->memory.of(
    letter ? memory_use::passing : memory_use::activations);
}

tl::expected<frame_receiver::places, std::string>
mailroom::place(int peer, frame_kind what, std::span<const unsigned char> text,
                std::uint64_t payload_bytes) {
  if (what == frame_kind::layer) {
    pending_[peer] = {.what = what};
    auto* const taker = layers_.load();
    if (taker == nullptr || peer != 0)
      return problem{"it sent values of a layer that nobody asked for"};
    const auto found = taker->place_of(text, payload_bytes / sizeof(float));
    if (!found)
      return problem{found.error()};
    return places{std::as_writable_bytes(*found)};
  }
  auto mail = wire::decode_mail(text);
  if (!mail)
    return problem{mail.error()};
  return place_mail(peer, std::move(*mail), payload_bytes);
}

tl::expected<frame_receiver::places, std::string>
mailroom::place_mail(int peer, wire::addressed_mail mail, std::uint64_t payload_bytes) {
  if (here_.load() == nullptr)
    return problem{"it sent mail before the run began"};
  if (!has_tensors(mail.what))
    return problem{"it sent mail without tensors where these travel"};
  if (auto wrong = rules_.fault_of(mail); !wrong.empty())
    return problem{wrong};
  if (node_of(mail.to) != own_)
    return problem{"it sent mail to an actor of another node"};
  auto& all = pending_[peer] = {.mail = std::move(mail)};
  const auto& tensors = all.mail.tensors;
  std::uint64_t sum = 0;
  for (const auto bytes : tensors)
    sum += static_cast<std::uint64_t>(bytes);
  if (sum != payload_bytes)
    return problem{"it sent a frame of another size than its tensors"};
  const bool integers = std::holds_alternative<labels>(all.mail.what);
  places result;
  std::size_t i = 0;
  for (auto* const one : wire::buffers_of(all.mail.what))
    if (const auto bytes = tensors[i++]; bytes > 0) {
      *one = landing_.room(rules_.room_of(all.mail, bytes), account_of(all.mail),
                           integers ? element::int32 : element::fp32);
      result.push_back(bytes_of(*one, bytes));
    }
  for (auto* const one : wire::arrays_of(all.mail.what)) {
    one->resize(static_cast<std::size_t>(tensors[i++]) / sizeof(float));
    result.push_back(std::as_writable_bytes(std::span{*one}));
  }
  return result;
}

std::string mailroom::deliver(int peer) {
  auto all = std::exchange(pending_[peer], {});
  if (all.what != frame_kind::layer)
    return post_here(std::move(all.mail));
  layers_.load()->told();
  return {};
}

/// Delivers a message to a local actor. Returns the error in the message, or an empty
/// string.
std::string mailroom::post_here(wire::addressed_mail mail) {
  const std::shared_lock open{open_lock_}; // actors last as long as this lock
  const auto& everybody = everybody_;
  if (!everybody)
    return {}; // the run has ended, or has not started
  auto& meter = here_.load()->meter();
  std::string wrong;
  const auto give = [&](const auto& to) {
    std::visit(
      [&](auto& what) {
        using message = std::decay_t<decltype(what)>;
        using handle = std::decay_t<decltype(to)>;
        if constexpr (hears<message, handle>::value)
          post(meter, to, std::move(what));
        else
          wrong = "it sent mail that its receiver does not take";
      },
      mail.what);
  };
  const auto& to = mail.to;
  using kind = wire::address::kind;
  switch (to.what) {
  case kind::coordinator:
    give(everybody->coordinator);
    break;
  case kind::recorder:
    give(everybody->recorder);
    break;
  case kind::scheduler:
    give(everybody->schedulers[static_cast<std::size_t>(to.number)]);
    break;
  case kind::stage:
    give(everybody->stage(to.where));
    break;
  case kind::optimizer_shard:
    give(everybody->optimizer(to.where));
    break;
  case kind::expert:
    everybody->to({role::expert, to.where, to.number}, give);
    break;
  case kind::data_source:
    give(everybody->data_source(to.where));
    break;
  }
  return wrong;
}

void mailroom::send_layer(int node, std::vector<unsigned char> text,
                          std::shared_ptr<const std::vector<float>> values) {
  outgoing_frame frame{.what = frame_kind::layer, .text = std::move(text)};
  frame.payload.push_back({std::as_bytes(std::span{*values}), values});
  tensors_.send(node, std::move(frame));
}

} // namespace troupe
