// SPDX-License-Identifier: BSD-3-Clause
// The compiled part of the Python module `troupe`: options, sessions and their results.
// troupe/__init__.py is what users call.

#include "experiments/options/option_catalog.hpp"
#include "experiments/options/option_row.hpp"
#include "experiments/python/array_view.hpp"
#include "experiments/python/layers_and_data.hpp"
#include "experiments/python/only_session.hpp"
#include "experiments/python/python_pass.hpp"
#include "experiments/python/python_session.hpp"
#include "experiments/python/run_arrays.hpp"
#include "experiments/report/page.hpp"
#include "experiments/report/seconds.hpp"
#include "experiments/session/served_node.hpp"
#include "models/check_layer.hpp"
#include "models/utf8.hpp"

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <stdexcept>
#include <utility>

namespace py = pybind11;

namespace troupe::python {

namespace {

/// One run of a session.
struct kept_run {
  std::shared_ptr<kept_session> session;
  const run_account* account;
};

/// Calls a function that performs a session. Returns to Python, also by an exception,
/// unless the interpreter ends (only_session::stay_if_python_ends).
template <class Function>
auto unless_python_ends(const Function& function) {
  try {
    auto result = function();
    only_session::stay_if_python_ends();
    return result;
  } catch (...) {
    only_session::stay_if_python_ends();
    throw;
  }
}

/// A node, until it is ended.
struct kept_node {
  std::unique_ptr<serving_node> node;
};

/// A read-only array of values that `owner` keeps alive, without a copy.
template <class Value>
py::object view_of(const std::vector<Value>& values, const py::object& owner) {
  return view(values.data(), {static_cast<py::ssize_t>(values.size())}, false, owner);
}

/// Rows that the array owns.
template <class Row>
py::array array_of(std::vector<Row> rows) {
  auto* const owned = new std::vector<Row>{std::move(rows)};
  const py::capsule owner{
    owned, [](void* kept) { delete static_cast<std::vector<Row>*>(kept); }};
  return py::array_t<Row>(static_cast<py::ssize_t>(owned->size()), owned->data(),
                          owner);
}

/// The parameters by name, as the run's own memory; empty from a simulation and from a
/// run that failed.
py::dict parameters_of(const py::object& run) {
  const auto& account = *run.cast<const kept_run&>().account;
  const auto& plan = account.request->plan;
  py::dict result;
  if (!plan.work || account.result.parameters.empty())
    return result;
  const auto& layers = plan.work->whole.layers;
  for (std::size_t l = 0; l < layers.size(); ++l)
    for (const auto& p : layers[l]->parameters())
      result[py::str(p.name)] =
        view(account.result.parameters[l].data() + p.offset,
             std::vector<py::ssize_t>(p.dims.begin(), p.dims.end()), false, run);
  return result;
}

std::vector<std::string> readable(std::vector<std::string> texts) {
  for (auto& text : texts)
    text = utf8(text);
  return texts;
}

py::list options_of_program(const std::string& name) {
  py::list result;
  for (const auto& row : rows_of(program_named(name)))
    result.append(py::dict(py::arg("names") = row.names, py::arg("help") = row.help,
                           py::arg("heading") = row.heading));
  return result;
}

} // namespace

} // namespace troupe::python

PYBIND11_MODULE(_troupe, m) {
  using namespace troupe;
  using namespace troupe::python;
  leave_signals();
  PYBIND11_NUMPY_DTYPE(timeline_row, rank, kind, stage, direction, microbatch, version,
                       versions_alive, part, start, end, expert);
  PYBIND11_NUMPY_DTYPE(memory_row, rank, peak, parameters, gradients, optimizer,
                       activations, passing, checkpoint);
  PYBIND11_NUMPY_DTYPE(stage_row, stage, versions, staleness_max, staleness_mean);

  py::class_<kept_run>(m, "Run")
    .def_property_readonly("schedule",
                           [](const kept_run& r) { return r.account->request->text; })
    .def_property_readonly(
      "ending", [](const kept_run& r) { return name_of(r.account->outcome()); })
    .def_property_readonly("failure",
                           [](const kept_run& r) { return r.account->result.failure; })
    .def_property_readonly("losses",
                           [](const py::object& r) {
                             return view_of(
                               r.cast<const kept_run&>().account->result.loss, r);
                           })
    .def_property_readonly(
      "loss_samples",
      [](const py::object& r) {
        return view_of(r.cast<const kept_run&>().account->result.loss_samples, r);
      })
    .def_property_readonly("loss_times",
                           [](const kept_run& r) {
                             return array_of(seconds_of(r.account->result.loss_times));
                           })
    .def_property_readonly(
      "gradient_norms",
      [](const py::object& r) {
        return view_of(r.cast<const kept_run&>().account->result.gradient_norms, r);
      })
    .def_property_readonly(
      "learning_rates",
      [](const py::object& r) {
        return view_of(r.cast<const kept_run&>().account->result.learning_rates, r);
      })
    .def_property_readonly(
      "timeline", [](const kept_run& r) { return array_of(timeline_rows(*r.account)); })
    .def_property_readonly(
      "timeline_cut", [](const kept_run& r) { return r.account->result.actions_cut; })
    .def_property_readonly(
      "memory", [](const kept_run& r) { return array_of(memory_rows(*r.account)); })
    .def_property_readonly(
      "stages", [](const kept_run& r) { return array_of(stage_rows(*r.account)); })
    .def_property_readonly("parameters", &parameters_of);

  py::class_<kept_session, std::shared_ptr<kept_session>>(m, "Session")
    .def_property_readonly("exit_code",
                           [](const kept_session& s) { return s.ended.exit_code; })
    .def_property_readonly("errors",
                           [](const kept_session& s) { return readable(s.errors); })
    .def_property_readonly("notes",
                           [](const kept_session& s) { return readable(s.notes); })
    .def_property_readonly("json",
                           [](const kept_session& s) { return s.ended.results; })
    .def_property_readonly("table", [](const kept_session& s) { return s.ended.table; })
    .def_property_readonly("page",
                           [](const kept_session& s) {
                             return report_page(s.ended.results, s.ended.table,
                                                s.ended.timelines);
                           })
    .def_property_readonly("runs", [](const std::shared_ptr<kept_session>& s) {
      std::vector<kept_run> result;
      for (const auto& account : s->ended.accounts)
        result.push_back({s, &account});
      return result;
    });

  py::class_<network_layer, std::shared_ptr<network_layer>>(m, "Layer")
    .def_property_readonly("shapes", [](const std::shared_ptr<network_layer>& one) {
      py::dict result;
      const auto made = one->as_layer(one);
      for (const auto& p : made->parameters())
        result[py::str(p.name)] = py::tuple(py::cast(p.dims));
      return result;
    });
  python_pass::declare(m);
  py::class_<data_set, std::shared_ptr<data_set>>(m, "Data");
  py::class_<own_parts>(m, "OwnParts");
  py::class_<kept_node>(m, "Node")
    .def(py::init([](const own_parts& own, const std::string& listen, int threads,
                     const std::string& folder, const std::string& tls, bool insecure) {
      auto node = start_node(own, {.listen = listen,
                                   .threads = threads,
                                   .folder = folder,
                                   .tls = tls,
                                   .insecure = insecure});
      if (!node)
        throw_value_error(node.error());
      return kept_node{std::move(*node)};
    }))
    .def_property_readonly(
      "address",
      [](const kept_node& n) { return n.node ? n.node->address() : std::string{}; })
    // Passes of a run in progress need Python's lock.
    .def(
      "end", [](kept_node& n) { n.node.reset(); },
      py::call_guard<py::gil_scoped_release>());
  m.def("layer", [](const py::object& object) {
    return std::const_pointer_cast<network_layer>(
      std::static_pointer_cast<const network_layer>(layer_of(object)));
  });
  m.def("linear", [](const std::string& name, std::int64_t in, std::int64_t out,
                     bool rectified) {
    try {
      return std::const_pointer_cast<network_layer>(linear(name, in, out, rectified));
    } catch (const std::invalid_argument& error) {
      throw py::value_error{error.what()};
    }
  });
  m.def("data_of_arrays", [](const py::array& inputs, const py::array& labels,
                             std::int64_t held_out, std::uint64_t seed) {
    return std::const_pointer_cast<data_set>(
      data_of_arrays(inputs, labels, held_out, seed));
  });
  m.def("data_of_function",
        [](const py::function& sample, std::int64_t inputs, std::int64_t labels,
           bool reads_tokens, std::int64_t held_out) {
          return std::const_pointer_cast<data_set>(
            data_of_function(sample, {inputs, labels, reads_tokens}, held_out));
        });
  m.def("own_parts", [](const py::object& layers, std::int64_t predictions,
                        bool reads_tokens, const py::object& data,
                        const py::dict& values) {
    using flat_values = py::array_t<float, py::array::c_style | py::array::forcecast>;
    own_parts result;
    for (const auto& [name, given] : values) {
      const auto flat = py::cast<flat_values>(given);
      result.values[py::cast<std::string>(name)].assign(flat.data(),
                                                        flat.data() + flat.size());
    }
    if (!layers.is_none()) {
      auto& network = result.network.emplace();
      network.predictions = predictions;
      network.reads_tokens = reads_tokens;
      for (const auto& layer : layers)
        network.layers.push_back(layer.cast<std::shared_ptr<network_layer>>());
    }
    if (!data.is_none())
      result.data = data.cast<std::shared_ptr<data_set>>();
    return result;
  });
  m.def("check_layer", [](const py::object& object, std::int64_t samples,
                          std::int32_t words, double tolerance, std::uint64_t seed) {
    return unless_python_ends([&] {
      return difference_in(
        object,
        {.samples = samples, .words = words, .tolerance = tolerance, .seed = seed});
    });
  });
  m.def("perform", [](const std::string& name, const std::vector<std::string>& words,
                      const std::map<std::string, std::string>& schedules,
                      const own_parts& own, const py::object& advance) {
    return unless_python_ends(
      [&] { return perform(name, words, schedules, own, advance); });
  });
  m.def("options", &options_of_program, py::arg("program"));
  m.def("end_last_session", &only_session::end,
        py::call_guard<py::gil_scoped_release>());
  m.def("forget_session", &only_session::forget);
  m.attr("installed_programs") = TROUPE_INSTALLED_PROGRAMS; // as seen from the package
}
