// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

// The interface for a gradient exchange that the user provides, in place of the
// built-in exchanges between data replicas.

namespace troupe {

/// A message from one data replica to another replica of the same stage.
struct exchange_message {
  int to; ///< Index of the receiving data replica, from 0.
  std::vector<std::byte> payload;
};

/// A meeting that the user provides: the data replicas of a stage combine their
/// gradients before an update. Each replica of each stage has an object, which lasts as
/// long as the run. Updates follow one another: `begin()` is called once per update,
/// and the next call comes only after `is_done()` returned true. Messages of an update
/// reach `receive()` after `begin()` of that update. Messages of one replica arrive in
/// the order in which that replica sent them.
///
/// One thread at a time calls an object, not always the same thread; several objects
/// may be called at the same time. Calls run on actor threads, not on device threads. A
/// call must be short compared with a backward, and shorter than `stall_timeout`: a
/// longer call ends the run. An exception from any function fails the run; the failure
/// has the exception's text and the actor's name.
///
/// Gradients are fp32, also where a model stores bf16 (model_options::stored). Messages
/// are bytes; the exchange chooses the precision.
class user_exchange {
public:
  virtual ~user_exchange() = default;

  /// Starts the exchange of an update: this replica's gradients are complete, in all
  /// directions. When is_done() returns true, `gradients` must hold the sum over the
  /// samples of all replicas, or an estimate of that sum. The update divides by the
  /// batch's samples, then clips. All replicas must end with the same values: otherwise
  /// the replicas drift apart, and a comparison of parameters at the end fails the
  /// training. Returns the messages to other replicas; a message to this replica, or to
  /// a replica that does not exist, ends the run.
  /// \param gradients one fp32 array per layer of the stage, of the same sizes at every
  /// update. `exchange_member::parameters` gives the parameters' offsets. Values
  /// between parameters are zeros, which may be overwritten and are never read. The
  /// arrays belong to the exchange until the exchange is done.
  virtual std::vector<exchange_message>
  begin(std::span<const std::span<float>> gradients) = 0;

  /// Handles a message. Returns messages to other replicas, as begin() does.
  /// \param from index of the sending data replica
  /// \param payload valid until the call returns
  virtual std::vector<exchange_message> receive(int from,
                                                std::span<const std::byte> payload) = 0;

  /// True once this replica's gradients are final and no message to this replica is
  /// outstanding for this update. A message that arrives after is_done() returned true
  /// ends the run. Called after the update's `begin()`, any number of times.
  virtual bool is_done() const = 0;

  /// The reason of waiting, in words, for stall reports. Called only after `begin()`,
  /// while is_done() returns false.
  virtual std::string waits_for() const { return "messages of other data replicas"; }
};

/// Offset and shape of a parameter's gradient in the arrays of `begin()`. A parameter
/// has one dim (a bias, or the gain of a norm) or several (a matrix, or filters).
struct exchanged_parameter {
  std::string name; ///< Name in the weight file.
  /// Dims in the weight file: rows and columns of a matrix.
  std::vector<std::int64_t> dims;
  int array;           ///< Index of the array, from 0.
  std::int64_t offset; ///< Offset of the first value in the array.
  std::int64_t values; ///< The product of the dims.
};

/// The stage and data replica that an exchange object belongs to, and the parameters of
/// that stage.
struct exchange_member {
  int stage;
  int replica;  ///< Index of the data replica, from 0.
  int replicas; ///< Number of data replicas.
  /// Parameters of the stage, in the stage's order.
  std::vector<exchanged_parameter> parameters = {};
};

/// Makes the exchange object of one replica of one stage. `train()` calls the maker on
/// the calling thread, stage by stage, before the run starts. An exception or a null
/// result is an error of `train()`, with the exception's text, the stage and the
/// replica.
using exchange_maker =
  std::function<std::unique_ptr<user_exchange>(const exchange_member&)>;

} // namespace troupe
