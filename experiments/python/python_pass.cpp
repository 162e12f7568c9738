// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/python/python_pass.hpp"

#include "experiments/python/array_view.hpp"

#include <pybind11/numpy.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace troupe::python {

namespace {

/// Accepts the array itself, which `+=` assigns. \throws py::type_error otherwise
void refuse_another(const py::object& own, const py::object& assigned,
                    const char* name) {
  if (py::isinstance<py::array>(own) && py::isinstance<py::array>(assigned)
      && py::array{own}.data() == py::array{assigned}.data())
    return;
  throw py::type_error{"an assignment to p." + std::string{name}
                       + " replaces what the run gave: write values, as in p." + name
                       + "[:] = .."};
}

} // namespace

python_pass::python_pass(const user_pass& pass, const user_layer& layer,
                         user_layer::buffer_sizes for_a_sample, bool may_write)
  : pass_(&pass), layer_(layer), for_a_sample_(for_a_sample), may_write_(may_write) {
  // nop
}

const user_pass& python_pass::pass() const {
  if (pass_ == nullptr)
    throw std::runtime_error{"the pass has returned: its arrays are no longer valid"};
  return *pass_;
}

template <class Value>
py::object python_pass::array(const py::object& self, const Value* values,
                              std::int64_t count, bool writable) {
  const py::ssize_t samples = self.cast<python_pass&>().pass().samples;
  return view(count > 0 ? values : nullptr, {samples, static_cast<py::ssize_t>(count)},
              writable, self);
}

py::object python_pass::by_name(const py::object& self, bool writable) {
  auto& p = self.cast<python_pass&>();
  const auto& pass = p.pass();
  auto& made = writable ? p.gradients_ : p.parameters_;
  if (made)
    return made;
  // An owner that does not refer back to this object, which keeps the arrays.
  const py::capsule owner{p.pass_, [](void*) {}};
  py::dict arrays;
  for (std::size_t t = 0; t < p.layer_.parameters().size(); ++t) {
    const auto& tensor = p.layer_.parameters()[t];
    std::vector<py::ssize_t> dims(tensor.dims.begin(), tensor.dims.end());
    if (writable && t < pass.gradients.size())
      arrays[py::str(tensor.name)] =
        view(pass.gradients[t], std::move(dims), true, owner);
    if (!writable && t < pass.parameters.size())
      arrays[py::str(tensor.name)] =
        view(pass.parameters[t], std::move(dims), p.may_write_, owner);
  }
  made = py::module_::import("troupe").attr("_Arrays")(arrays);
  return made;
}

void python_pass::declare(py::module_& m) {
  py::class_<python_pass, std::shared_ptr<python_pass>> declared(m, "Pass");
  const auto array_of = [&](const char* name, auto get) {
    declared.def_property(name, get,
                          [get, name](const py::object& self, const py::object& other) {
                            refuse_another(get(self), other, name);
                          });
  };
  array_of("x", [](const py::object& self) {
    const auto& p = self.cast<const python_pass&>();
    const auto inputs = p.layer_.inputs();
    return p.pass().x != nullptr ? array(self, p.pass().x, inputs, p.may_write_)
                                 : array(self, p.pass().tokens, inputs, p.may_write_);
  });
  array_of("y", [](const py::object& self) {
    const auto& p = self.cast<const python_pass&>();
    return array(self, p.pass().y, p.layer_.outputs(), true);
  });
  array_of("dy", [](const py::object& self) {
    const auto& p = self.cast<const python_pass&>();
    return array(self, p.pass().dy, p.layer_.outputs(), p.may_write_);
  });
  array_of("dx", [](const py::object& self) {
    const auto& p = self.cast<const python_pass&>();
    return array(self, p.pass().dx, p.layer_.inputs(), true);
  });
  array_of("saved", [](const py::object& self) {
    const auto& p = self.cast<const python_pass&>();
    return array(self, p.pass().saved, p.for_a_sample_.saved, true);
  });
  array_of("kept", [](const py::object& self) {
    const auto& p = self.cast<const python_pass&>();
    return array(self, p.pass().kept, p.for_a_sample_.kept, true);
  });
  array_of("scratch", [](const py::object& self) {
    const auto& p = self.cast<const python_pass&>();
    return array(self, p.pass().scratch, p.for_a_sample_.scratch, true);
  });
  declared
    .def_property_readonly("parameters",
                           [](const py::object& self) { return by_name(self, false); })
    .def_property_readonly("gradients",
                           [](const py::object& self) { return by_name(self, true); })
    .def_property_readonly("samples",
                           [](const python_pass& p) { return p.pass().samples; })
    .def_property_readonly("threads",
                           [](const python_pass& p) { return p.pass().threads; })
    .def_property_readonly("adds", [](const python_pass& p) { return p.pass().adds; });
}

} // namespace troupe::python
