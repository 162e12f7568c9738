// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/python/layers_and_data.hpp"

#include "experiments/python/only_session.hpp"
#include "experiments/python/python_pass.hpp"
#include "models/data/shuffle.hpp"
#include "models/data_identity.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace troupe::python {

namespace {

/// Drops a Python object under Python's lock, from whichever thread.
template <class Object>
std::shared_ptr<Object> kept(Object object) {
  return {new Object{std::move(object)}, [](Object* last) {
            py::gil_scoped_acquire locked;
            delete last;
          }};
}

/// Calls Python under its lock. An exception of Python becomes one with its text, which
/// has the lines of the user's program.
template <class Function>
void call_python(const std::string& name, const Function& function) {
  if (only_session::python_ends())
    throw std::runtime_error{"the interpreter ends"};
  py::gil_scoped_acquire locked;
  std::string text;
  try {
    function();
    return;
  } catch (const py::error_already_set& error) {
    if (error.matches(PyExc_KeyboardInterrupt))
      note_interrupt();
    text = error.what();
  } catch (const py::builtin_exception& error) {
    text = error.what();
  }
  throw std::runtime_error{name + ": " + text};
}

std::vector<layer_tensor> tensors_of(const py::object& object) {
  static const std::map<std::string, beginning> beginnings{
    {"zeros", beginning::zeros},
    {"ones", beginning::ones},
    {"normal", beginning::normal},
    {"uniform", beginning::uniform}};
  std::vector<layer_tensor> result;
  for (const auto& entry : object.attr("parameters")) {
    const auto parts = entry.cast<py::sequence>();
    if (parts.size() < 2 || parts.size() > 4)
      throw py::value_error{"parameters of a layer are tuples (name, dims, beginning, "
                            "scale), of which the last two may be left out"};
    auto& added = result.emplace_back();
    added.name = parts[0].cast<std::string>();
    for (const auto& dim : parts[1].cast<py::sequence>())
      added.dims.push_back(dim.cast<std::int64_t>());
    if (parts.size() > 2) {
      const auto known = beginnings.find(parts[2].cast<std::string>());
      if (known == beginnings.end())
        throw py::value_error{"parameter " + added.name + " begins '"
                              + parts[2].cast<std::string>()
                              + "': zeros, ones, normal and uniform are allowed"};
      added.begins = known->second;
    }
    if (parts.size() > 3)
      added.scale = parts[3].cast<double>();
    if (!(added.scale >= 0 && std::isfinite(added.scale)))
      throw py::value_error{"parameter " + added.name
                            + " has a scale that is no number of 0 or more"};
  }
  return result;
}

/// A member that is a whole number. \throws pybind11::value_error
std::int64_t whole(const py::object& layer, const char* member) {
  const auto value = py::getattr(layer, member, py::none());
  if (py::isinstance<py::bool_>(value) || PyIndex_Check(value.ptr()) == 0)
    throw py::value_error{"member " + std::string{member} + " of a layer is "
                          + py::repr(value).cast<std::string>()
                          + ": a whole number is needed"};
  return value.cast<std::int64_t>();
}

class python_layer : public user_layer {
public:
  explicit python_layer(const py::object& object)
    : user_layer(tensors_of(object), whole(object, "inputs"), whole(object, "outputs")),
      name_(py::str(py::type::of(object).attr("__name__"))),
      operations_(object.attr("operations").cast<double>()),
      may_write_(object.attr("_may_write").cast<bool>()),
      object_(kept(object)) {
    for_a_sample_ = {whole(object, "saved"), whole(object, "kept"),
                     whole(object, "scratch")};
  }

  buffer_sizes buffers_for(std::int64_t samples) const override {
    const auto& [saved, kept_values, scratch] = for_a_sample_;
    return {saved * samples, kept_values * samples, scratch * samples};
  }

  double operations() const override { return operations_; }

  void forward(const user_pass& pass) const override { call("forward", pass); }
  void input_gradient(const user_pass& pass) const override {
    call("input_gradient", pass);
  }
  void weight_gradient(const user_pass& pass) const override {
    call("weight_gradient", pass);
  }

private:
  void call(const char* method, const user_pass& pass) const {
    call_python(name_ + "." + method, [&] {
      const auto received =
        std::make_shared<python_pass>(pass, *this, for_a_sample_, may_write_);
      try {
        object_->attr(method)(received);
      } catch (...) {
        received->end();
        throw;
      }
      received->end();
    });
  }

  std::string name_;
  double operations_;
  bool may_write_; // PyTorch warns of arrays that are read-only, and writes to none
  std::shared_ptr<py::object> object_;
  buffer_sizes for_a_sample_;
};

/// Copies a sample of an array.
template <class Value>
void copy_sample(const py::array& from, std::int64_t sample, std::int64_t values,
                 Value* to) {
  if (to != nullptr)
    std::copy_n(static_cast<const Value*>(from.data()) + sample * values, values, to);
}

class array_data : public data_set {
public:
  array_data(py::array inputs, py::array labels, sample_shape shape,
             std::int64_t samples, std::int64_t held_out, std::uint64_t seed)
    : shape_(shape),
      trained_(samples - held_out),
      held_out_(held_out),
      shuffle_(trained_, seed),
      inputs_(kept(std::move(inputs))),
      labels_(kept(std::move(labels))),
      seed_(seed) {}

  std::optional<sample_shape> one_sample() const override { return shape_; }
  void training(std::int64_t index, const sample_view& to) const override {
    copy(shuffle_.item_at(index), to);
  }
  std::int64_t evaluation_size() const override { return held_out_; }
  void evaluation(std::int64_t index, const sample_view& to) const override {
    copy(trained_ + index, to);
  }
  std::optional<std::int64_t> epoch() const override { return trained_; }
  /// Of the arrays as they are now: a user may have changed values.
  std::optional<data_identity> identity() const override {
    content_sum sum;
    for (const auto& values : {inputs_, labels_})
      sum.add({static_cast<const std::byte*>(values->data()),
               static_cast<std::size_t>(values->nbytes())});
    return sum.identity("arrays in the order of seed " + std::to_string(seed_));
  }
  std::string description() const override {
    return std::to_string(trained_) + " samples of arrays, and "
           + std::to_string(held_out_) + " held out";
  }

private:
  void copy(std::int64_t sample, const sample_view& to) const {
    copy_sample(*inputs_, sample, shape_.inputs, to.tokens);
    copy_sample(*inputs_, sample, shape_.inputs, to.pixels);
    copy_sample(*labels_, sample, shape_.labels, to.labels);
  }

  sample_shape shape_;
  std::int64_t trained_, held_out_;
  epoch_shuffle shuffle_;
  std::shared_ptr<py::array> inputs_, labels_; // contiguous
  std::uint64_t seed_;
};

/// The values as a contiguous array of a type.
template <class Value>
py::array_t<Value> converted(const py::array& values) {
  return py::array_t<Value, py::array::c_style | py::array::forcecast>{values};
}

/// Copies what a Python function returned. Values of another type are converted, if
/// they are whole numbers or floating-point values are asked for.
/// \throws pybind11::value_error if the values do not fit
template <class Value>
void write(const py::object& from, std::int64_t count, const std::string& noun,
           Value* to) {
  if (to == nullptr)
    return;
  constexpr bool is_whole = std::is_integral_v<Value>;
  const py::array given =
    py::module_::import("numpy").attr("asarray")(from).cast<py::array>();
  const std::string allowed = is_whole ? "iub" : "iubf"; // kinds of NumPy's types
  if (allowed.find(given.dtype().kind()) == std::string::npos)
    throw py::value_error{
      "a sample has " + noun + " of "
      + py::str(py::object(given.dtype())).cast<std::string>()
      + (is_whole ? ": whole numbers are needed" : ": numbers are needed")};
  if (given.size() != count)
    throw py::value_error{"a sample has " + std::to_string(given.size()) + " " + noun
                          + ", and " + std::to_string(count) + " are needed"};
  if constexpr (is_whole) {
    const auto check = [&](const auto& values) {
      for (std::int64_t i = 0; i < count; ++i)
        if (!std::in_range<Value>(values.data()[i]))
          throw py::value_error{"a sample has " + noun + " that int32 does not hold"};
    };
    if (given.dtype().kind() == 'u')
      check(converted<std::uint64_t>(given));
    else
      check(converted<std::int64_t>(given));
  }
  std::copy_n(converted<Value>(given).data(), count, to);
}

class function_data : public data_set {
public:
  function_data(py::function sample, sample_shape shape, std::int64_t held_out)
    : shape_(shape), held_out_(held_out), sample_(kept(std::move(sample))) {}

  std::optional<sample_shape> one_sample() const override { return shape_; }
  void training(std::int64_t index, const sample_view& to) const override {
    copy(index, to);
  }
  std::int64_t evaluation_size() const override { return held_out_; }
  void evaluation(std::int64_t index, const sample_view& to) const override {
    copy(-1 - index, to);
  }
  std::string description() const override { return "samples of a Python function"; }

private:
  void copy(std::int64_t index, const sample_view& to) const {
    call_python("sample " + std::to_string(index), [&] {
      const auto values = py::object((*sample_)(index)).cast<py::sequence>();
      if (values.size() != 2)
        throw py::value_error{"a sample is a pair: inputs and labels"};
      write(values[0], shape_.inputs, "inputs", to.tokens);
      write(values[0], shape_.inputs, "inputs", to.pixels);
      write(values[1], shape_.labels, "labels", to.labels);
    });
  }

  sample_shape shape_;
  std::int64_t held_out_;
  std::shared_ptr<py::function> sample_;
};

} // namespace

std::shared_ptr<const user_layer> layer_of(const py::object& object) {
  try {
    return std::make_shared<python_layer>(object);
  } catch (const std::invalid_argument& error) {
    throw py::value_error{error.what()};
  } catch (const py::cast_error& error) {
    throw py::value_error{std::string{"a member of a layer has the wrong type: "}
                          + error.what()};
  }
}

std::shared_ptr<const data_set> data_of_arrays(const py::array& inputs,
                                               const py::array& labels,
                                               std::int64_t held_out,
                                               std::uint64_t seed) {
  const bool reads_tokens = py::isinstance<py::array_t<std::int32_t>>(inputs);
  const bool reads_values = py::isinstance<py::array_t<float>>(inputs);
  if (!reads_tokens && !reads_values)
    throw py::value_error{"inputs are arrays of int32 (tokens) or of float32"};
  if (!py::isinstance<py::array_t<std::int32_t>>(labels))
    throw py::value_error{"labels are arrays of int32"};
  if (inputs.ndim() < 1 || labels.ndim() < 1 || inputs.shape(0) != labels.shape(0))
    throw py::value_error{"inputs and labels have a row for each sample"};
  const std::int64_t samples = inputs.shape(0);
  if (held_out < 0 || held_out >= samples)
    throw py::value_error{"held_out is " + std::to_string(held_out) + " of "
                          + std::to_string(samples)
                          + " samples: 0 and more are allowed, but fewer than all"};
  const auto contiguous = [](const py::array& values) {
    return py::array::ensure(values, py::array::c_style);
  };
  return std::make_shared<array_data>(contiguous(inputs), contiguous(labels),
                                      sample_shape{.inputs = inputs.size() / samples,
                                                   .labels = labels.size() / samples,
                                                   .reads_tokens = reads_tokens},
                                      samples, held_out, seed);
}

std::shared_ptr<const data_set> data_of_function(const py::function& sample,
                                                 sample_shape shape,
                                                 std::int64_t held_out) {
  if (shape.inputs < 1 || shape.labels < 1 || held_out < 0)
    throw py::value_error{"a sample has at least one input and one label, and held_out "
                          "is 0 or more"};
  return std::make_shared<function_data>(sample, shape, held_out);
}

} // namespace troupe::python
