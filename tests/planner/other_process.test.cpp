// SPDX-License-Identifier: BSD-3-Clause
// Calls in a process of their own, and the solver in one.

#include "planner/other_process.hpp"

#include "planner/integer_program.hpp"

#include <catch2/catch_test_macros.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace troupe::planner {

namespace {

bool has_children() {
  return ::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD;
}

TEST_CASE("bytes of another process come whole", "[planner]") {
  const int parent = ::getpid();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{3}, std::size_t{1} << 20}) {
    std::string given(size, '\0');
    for (std::size_t i = 0; i < size; ++i)
      given[i] = static_cast<char>(i % 251);
    const auto bytes = in_other_process(
      [&] { return ::getpid() == parent ? std::string{"the same process"} : given; },
      20);
    CHECK(bytes == given);
    CHECK_FALSE(has_children());
  }
}

TEST_CASE("a process that ends early has no bytes", "[planner]") {
  CHECK_FALSE(in_other_process([]() -> std::string { std::abort(); }, 20));
  CHECK_FALSE(in_other_process([]() -> std::string { ::_exit(0); }, 20));
  CHECK_FALSE(in_other_process(
    []() -> std::string { throw std::runtime_error{"as a solver does"}; }, 20));
  CHECK_FALSE(has_children());
}

TEST_CASE("a process that stays is ended", "[planner]") {
  const auto begin = std::chrono::steady_clock::now();
  CHECK_FALSE(in_other_process(
    [] {
      ::sleep(40);
      return std::string{"too late"};
    },
    0.1));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{20});
  CHECK_FALSE(has_children());
}

TEST_CASE("a search by the solver says how it ended", "[planner]") {
  integer_program program;
  const int one = program.add_column(-1, 0, 10, true),
            other = program.add_column(-1, 0, 10, true);
  program.add_row({{one, 2}, {other, 2}}, -infinite, 7);
  const auto best = program.best_found(20);
  REQUIRE(best.values);
  CHECK((*best.values)[0] + (*best.values)[1] == 3);
  CHECK(best.end == search_end::proved);
  CHECK(program.best_found(0).end == search_end::out_of_time);
  program.add_row({{one, 1}}, 9, 10);
  const auto none = program.best_found(20);
  CHECK_FALSE(none.values);
  CHECK(none.end == search_end::proved);
}

TEST_CASE("an answer says that a search failed or ran out of time", "[planner]") {
  answer proved, late, failed;
  tell_end(search_end::proved, proved);
  tell_end(search_end::out_of_time, late);
  tell_end(search_end::failed, failed);
  CHECK((!proved.out_of_time && late.out_of_time && !failed.out_of_time));
  CHECK((proved.remark.empty() && late.remark.empty()));
  CHECK(failed.remark.find("solver") != std::string::npos);
}

} // namespace

} // namespace troupe::planner
