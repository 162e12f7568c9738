// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/python/python_session.hpp"

#include "experiments/options/command_line.hpp"
#include "experiments/python/layers_and_data.hpp"
#include "experiments/python/only_session.hpp"
#include "experiments/session/measured_options.hpp"
#include "experiments/session/programs.hpp"
#include "experiments/study/study_plan.hpp"
#include "models/utf8.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace py = pybind11;

namespace troupe::python {

namespace {

[[noreturn]] void throw_interrupt() {
  PyErr_SetString(PyExc_KeyboardInterrupt, "interrupted");
  throw py::error_already_set{};
}

using session_result = tl::expected<ended_session, std::string>;

/// Performs a session in a thread, while the caller's thread runs Python's handlers of
/// signals. The session's thread takes Python's lock for the progress alone.
class watched_session {
public:
  /// \param perform performs the session
  watched_session(const std::function<session_result(const program_listener&)>& perform,
                  kept_session& to, const py::object& advance)
    : advance_(advance) {
    const program_listener listener{
      .error = [&](const std::string& s) { to.errors.push_back(s); },
      .note = [&](const std::string& s) { to.notes.push_back(s); },
      .advance = advance.is_none()
                   ? nullptr
                   : std::function<void(const progress&)>{[this](const progress& p) {
                       report(p);
                     }}};
    py::gil_scoped_release free;
    interrupt(false);
    std::thread worker{[&] {
      try {
        end(perform(listener));
      } catch (...) {
        failure_ = std::current_exception();
        end(tl::unexpected{std::string{}});
      }
    }};
    wait();
    worker.join();
  }

  /// Returns the runs. Throws what ended the session before its end: an exception of
  /// the progress function or of a signal's handler, or an exception of the session.
  session_result take() {
    if (of_python_)
      throw std::move(*of_python_);
    if (was_interrupted() && !*result_)
      throw_interrupt();
    if (failure_)
      std::rethrow_exception(failure_);
    if (was_interrupted()) // also if the run was done, or a pass stalled
      (*result_)->exit_code = ended_by_user;
    return std::move(*result_);
  }

private:
  void end(session_result result) {
    const std::lock_guard lock{mutex_};
    result_ = std::move(result);
    has_ended_.notify_one();
  }

  void wait() {
    constexpr auto interval = std::chrono::milliseconds{50};
    std::unique_lock lock{mutex_};
    while (!has_ended_.wait_for(lock, interval, [&] { return result_.has_value(); })) {
      lock.unlock();
      {
        py::gil_scoped_acquire locked;
        if (PyErr_CheckSignals() != 0) {
          const py::error_already_set error;
          if (error.type().is(py::handle{PyExc_KeyboardInterrupt})) {
            note_interrupt(); // take() tells
            interrupt(true);
          } else {
            end_by(error);
          }
        }
      }
      lock.lock();
    }
  }

  void report(const progress& p) {
    py::gil_scoped_acquire locked;
    if (of_python_)
      return;
    try {
      for (const auto& loss : p.losses)
        if (!interruption()) // a slow function would receive losses of long ago
          advance_(loss.samples, loss.loss);
    } catch (py::error_already_set& error) {
      end_by(error);
    }
  }

  /// Ends the session by an exception of Python.
  /// \pre the caller has Python's lock
  void end_by(const py::error_already_set& error) {
    if (!of_python_)
      of_python_.emplace(error);
    interrupt(true);
  }

  const py::object& advance_;
  std::mutex mutex_;
  std::condition_variable has_ended_;
  std::optional<session_result> result_;
  std::exception_ptr failure_;
  std::optional<py::error_already_set> of_python_;
};

} // namespace

void throw_value_error(const std::string& sentence) {
  throw py::value_error{utf8(sentence)};
}

program_info program_named(const std::string& name) {
  if (const auto* const performed = performed_program_named(name))
    return performed->info;
  if (name == "study")
    return study_of(session_program("compare"));
  for (const auto& program : session_programs())
    if (program.name == name)
      return program;
  throw py::value_error{"there is no program '" + name
                        + "': train, compare, simulate, verify, evaluate, memory and "
                          "study are allowed"};
}

std::shared_ptr<kept_session> perform(const std::string& name,
                                      const std::vector<std::string>& words,
                                      std::map<std::string, std::string> schedules,
                                      own_parts own, const py::object& advance) {
  const only_session guard;
  const auto* const performed = performed_program_named(name);
  auto program = program_named(name);
  // No report is written unless report= names a folder.
  program.defaults.output.new_report.clear();
  program.defaults.schedules.texts = std::move(schedules);
  auto o = options_of(program, words);
  if (!o)
    throw_value_error(o.error().sentence);
  o->own = std::move(own);
  auto to = std::make_shared<kept_session>();
  std::string error;
  try {
    py::gil_scoped_release free;
    error = measure_options(*o);
    if (error.empty() && !performed) {
      auto shared = set_up(*o);
      if (shared)
        to->shared = std::move(*shared);
      error = shared ? to->shared.completed : shared.error();
    }
  } catch (...) {
    if (was_interrupted())
      throw_interrupt();
    throw;
  }
  if (was_interrupted())
    throw_interrupt();
  if (!error.empty())
    throw_value_error(error);
  watched_session session{[&](const program_listener& listener) -> session_result {
                            if (!performed)
                              return perform_session(*o, to->shared, listener, true);
                            auto end = performed->perform(*o, listener);
                            if (!end)
                              return tl::unexpected{end.error()};
                            return ended_session{std::move(*end)};
                          },
                          *to, advance};
  auto ended = session.take();
  if (!ended)
    throw_value_error(ended.error());
  to->ended = std::move(*ended);
  return to;
}

std::string difference_in(const py::object& object, const layer_check& how) {
  const auto layer = layer_of(object);
  const only_session guard;
  std::string wrong;
  {
    py::gil_scoped_release free;
    wrong = check_layer(*layer, how);
  }
  if (was_interrupted())
    throw_interrupt();
  return utf8(wrong);
}

} // namespace troupe::python
