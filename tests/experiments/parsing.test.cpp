// SPDX-License-Identifier: BSD-3-Clause
#include "experiments/options/parsing.hpp"

#include "experiments/options/schedule_options.hpp"
#include "tests/temporary_folder.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>

namespace troupe::parsing_test {

TEST_CASE("a whole number is digits alone, without a leading 0", "[parsing]") {
  CHECK(whole_number<int>("10") == 10);
  CHECK(whole_number<int>("0") == 0);
  CHECK(whole_number<int>("-3") == -3);
  CHECK(whole_number<int>("2147483647") == 2147483647);
  CHECK(whole_number<std::uint64_t>("18446744073709551615") == 18446744073709551615ULL);
  for (const char* text : {"",           " ",           "010",
                           "-01",        "00",          "0x10",
                           "0b1",        "+3",          " 3",
                           "3 ",         "3.0",         "1e3",
                           "1'000",      "1_000",       "1,000",
                           "ten",        "-",           "--3",
                           "2147483648", "-2147483649", "99999999999999999999"})
    CHECK_FALSE(whole_number<int>(text).has_value());
  for (const char* text : {"-1", "18446744073709551616"})
    CHECK_FALSE(whole_number<std::uint64_t>(text).has_value());
  CHECK_FALSE(whole_number<std::int64_t>("9223372036854775808").has_value());
}

TEST_CASE("a number is finite and decimal", "[parsing]") {
  CHECK(decimal("0.5") == 0.5);
  CHECK(decimal("1e-3") == 0.001);
  CHECK(decimal("-2") == -2.0);
  CHECK(number("7") == 7.0);
  for (const char* text : {"", " ", "nan", "inf", "-inf", "infinity", "0x10", "0x1p3",
                           "1e400", "1e-400", "+1", " 1", "1 ", "1,5", "1e", "e3", "."})
    CHECK_FALSE(decimal(text).has_value());
  CHECK_FALSE(number("-1").has_value());
}

TEST_CASE("a byte order mark is no part of a text", "[parsing]") {
  const std::string mark = "\xef\xbb\xbf";
  CHECK(without_byte_order_mark(mark + "a" + mark) == "a" + mark);
  CHECK(without_byte_order_mark("a") == "a");
  CHECK(without_byte_order_mark(mark.substr(0, 2)) == mark.substr(0, 2));
  const temporary_folder folder;
  CHECK(read_schedule_file(folder.write("s.csv", mark + "0F0,0B0\n").string())
        == "0F0,0B0\n");
}

} // namespace troupe::parsing_test
