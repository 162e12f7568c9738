// SPDX-License-Identifier: BSD-3-Clause
// A user's actor between each two stages. On the way back, the actor rounds gradients
// to 8 bits a value. The actor keeps the rounding error for the next gradient of the
// same kind (error feedback), and counts the bytes that a network would save. Seide et
// al., "1-Bit Stochastic Gradient Descent", 2014, section 3.

#include <caf/all.hpp>
#include <troupe/actors/mail/relay.hpp>
#include <troupe/troupe.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iostream>
#include <vector>

namespace {

std::atomic<std::int64_t> bytes_before = 0, bytes_after = 0;

struct squeezer_state {
  std::vector<float> lost; ///< Rounding errors of the previous gradient.
};

/// Rounds in place to 255 steps between the largest value and the negated largest
/// value. The result is the array that a receiver would compute from 8 bits a value and
/// one float.
void squeeze(float* values, std::int64_t count, std::vector<float>& lost) {
  lost.resize(static_cast<std::size_t>(count), 0);
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] += lost[static_cast<std::size_t>(i)];
    largest = std::max(largest, std::fabs(values[i]));
  }
  const float step = largest > 0 ? largest / 127 : 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto code = static_cast<std::int8_t>(std::lround(values[i] / step));
    lost[static_cast<std::size_t>(i)] = values[i] - static_cast<float>(code) * step;
    values[i] = static_cast<float>(code) * step;
  }
  bytes_before += count * std::int64_t{sizeof(float)};
  bytes_after += count + std::int64_t{sizeof(float)};
}

troupe::neighbour_actor::behavior_type
squeezer(caf::stateful_actor<squeezer_state, troupe::relay>* self,
         const troupe::relay_place& place) {
  return {
    [=](const troupe::activation& x) { self->send(place.above, x); },
    [=](const troupe::gradient& g) {
      squeeze(g.payload.data(), g.header.samples * g.header.values, self->state.lost);
      self->send(place.below, g);
    },
  };
}

} // namespace

int main() {
  const troupe::model_options gpt{.layers = 3, .width = 32, .length = 32};
  const auto data = troupe::open_data("synthetic", gpt, 1);
  troupe::training_job job{
    .model = gpt, .data = data.value(), .pipeline_schedule = troupe::one_f_one_b()};
  job.stages = 3;
  const auto plain = troupe::train(job);
  job.relays = std::make_shared<troupe::user_relays>(troupe::user_relays{
    [](caf::actor_system& system, const troupe::relay_place& where) {
      return system.spawn(squeezer, where);
    }});
  const auto squeezed = troupe::train(job);
  for (const auto& one : {plain, squeezed})
    if (!one || one->outcome != troupe::ending::finished) {
      std::cerr << (one ? one->failure : one.error()) << '\n';
      return 1;
    }
  std::cout << "loss " << plain->loss.back() << ", with 8-bit gradients "
            << squeezed->loss.back() << "; " << bytes_after << " of " << bytes_before
            << " bytes between stages\n";
  const bool learns = squeezed->loss.back() < squeezed->loss.front();
  return learns && bytes_after * 3 < bytes_before ? 0 : 1;
}
