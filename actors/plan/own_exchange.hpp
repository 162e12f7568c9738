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
/// it should be short beside a backward. What a function throws ends the run with its
/// text and the name of the actor.
class own_exchange {
public:
  virtual ~own_exchange() = default;

  /// This replica's gradients of an update are complete. What is left in them when the
  /// meeting is over should be the sum of the gradients of the samples of all replicas,
  /// or what stands for it: the update divides by their number. All replicas should
  /// leave the same values, or their parameters drift apart.
  /// \param gradients the arrays of the stage's layers, fp32: parameters in their
  /// order, with zeros between them. They belong to the meeting until it is over.
  /// Returns what this replica writes to others.
  virtual std::vector<exchange_letter>
  begin(std::span<const std::span<float>> gradients) = 0;

  /// A letter. Returns the answers.
  virtual std::vector<exchange_letter> take(int from,
                                            std::span<const std::byte> what) = 0;

  /// Whether this replica's gradients are what it updates with, and nobody will write
  /// to it any more for this update: who does ends the run.
  virtual bool over() const = 0;

  /// What it waits for, in words, for whoever asks why nothing moves.
  virtual std::string waits_for() const { return "letters of other data replicas"; }
};

/// Whose meeting an object is.
struct exchange_place {
  int stage;
  int replica;  ///< The data replica, from 0.
  int replicas; ///< How many there are.
};

/// Makes the object of a replica of a stage. train() calls it on its own thread, stage
/// by stage, before the run begins.
using exchange_maker =
  std::function<std::unique_ptr<own_exchange>(const exchange_place&)>;

} // namespace troupe
