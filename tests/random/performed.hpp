// SPDX-License-Identifier: BSD-3-Clause
// Runs programs with random words, in this process.
#pragma once

#include "experiments/session/program.hpp"

#include <algorithm>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

/// Captures the text of standard error during the object's lifetime.
class heard {
public:
  heard() : before_(std::cerr.rdbuf(text_.rdbuf())) {
    // nop
  }
  ~heard() { std::cerr.rdbuf(before_); }
  heard(const heard&) = delete;
  heard& operator=(const heard&) = delete;

  std::string text() const { return text_.str(); }

private:
  std::ostringstream text_;
  std::streambuf* before_;
};

struct outcome {
  int exit_code;
  std::string said;
};

/// Runs a program with such words, and returns the outcome.
inline outcome performed(const troupe::program_info& about,
                         const std::vector<std::string>& words,
                         const std::function<int(troupe::options)>& body) {
  std::vector<const char*> arguments{about.name.c_str()};
  for (const auto& word : words)
    arguments.push_back(word.c_str());
  const heard errors;
  const int exit_code = troupe::run_program(about, static_cast<int>(arguments.size()),
                                            arguments.data(), body);
  return {exit_code, errors.text()};
}

inline bool is_one_sentence(const std::string& program, const std::string& text) {
  return text.starts_with(program + ": ") && text.ends_with('\n')
         && std::ranges::count(text, '\n') == 1;
}

inline std::string command_of(const std::string& program,
                              const std::vector<std::string>& words) {
  std::string result = "./troupe " + program;
  for (const auto& word : words)
    result += " " + word;
  return result;
}
