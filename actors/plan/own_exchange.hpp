// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// What a data replica writes another one of the same stage.
struct exchange_letter {
  int to; ///< The data replica, from 0.
  std::vector<std::byte> what;
};

/// A meeting of one's own: how the data replicas of a stage make one gradient of theirs
/// before they update. Each replica of each stage has an object; it lasts as long as
/// the run. Updates follow one another: begin() is called once for each, and the next
/// time only after over(). Letters of an update reach take() after its begin(), those
/// of one replica in the order in which it wrote them.
///
/// One thread at a time calls an object, not always the same; several objects may be
/// called at once. What is done here is done on the threads of actors, not of devices:
/// short beside a backward, and shorter than `stall_timeout`, which else ends the run.
/// What a function throws fails the run with its text and the name of the actor.
///
/// Gradients are fp32, also where a model stores bf16 (model_options::stored); letters
/// are bytes, of whatever precision the meeting gives them.
class own_exchange {
public:
  virtual ~own_exchange() = default;

  /// This replica's gradients of an update are complete, in all directions. When the
  /// meeting is over they should be the sum over the samples of all replicas, or stand
  /// for it: the update divides by the batch's samples, then clips. All replicas leave
  /// the same values: those that do not drift apart, and the training fails at its end,
  /// when their parameters are compared. Returns what is written to others.
  /// \param gradients an array of each layer of the stage, fp32, of one size at all
  /// updates: exchange_place::parameters says what stands where, and between them are
  /// zeros, which may be written and are not read. They belong to the meeting until it
  /// is over.
  virtual std::vector<exchange_letter>
  begin(std::span<const std::span<float>> gradients) = 0;

  /// A letter. Returns the answers.
  virtual std::vector<exchange_letter> take(int from,
                                            std::span<const std::byte> what) = 0;

  /// Whether this replica's gradients are final, and nobody will write to it any more
  /// for this update: who does ends the run. Asked after begin() and each take() only.
  virtual bool over() const = 0;

  /// What it waits for, in words, for whoever asks why nothing moves.
  virtual std::string waits_for() const { return "letters of other data replicas"; }
};

/// Where the gradient of a parameter stands in what begin() gets: a matrix, or a bias.
struct exchanged_parameter {
  std::string name;               ///< That of the weight file.
  std::vector<std::int64_t> dims; ///< As there; of a matrix rows and columns.
  int array;                      ///< Which of the gradients has it, from 0.
  std::int64_t offset;            ///< Of its first value in that array.
  std::int64_t values;            ///< The product of its dims.
};

/// Whose meeting an object is, and what is exchanged there.
struct exchange_place {
  int stage;
  int replica;  ///< The data replica, from 0.
  int replicas; ///< How many there are.
  /// Of the stage, in its order.
  std::vector<exchanged_parameter> parameters = {};
};

/// Makes the object of a replica of a stage. train() calls it on its own thread, stage
/// by stage, before the run begins. If it throws, or makes nothing, that is train()'s
/// error, with its text and the place.
using exchange_maker =
  std::function<std::unique_ptr<own_exchange>(const exchange_place&)>;

} // namespace troupe
