#include "schedules/program.hpp"

#include "schedules/catalog/catalog.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fstream>
#include <sstream>
#include <string>

using namespace troupe;

namespace {

std::string text(const schedule& sch, const shape& dims) {
  std::string result;
  for (int rank = 0; rank < dims.stages; ++rank) {
    std::string row;
    for (const auto& a : generate(sch, dims, rank))
      row += (row.empty() ? "" : " ") + to_string(a);
    result += row + '\n';
  }
  return result;
}

std::string golden(const std::string& name) {
  std::ifstream file(TROUPE_GOLDEN "/" + name);
  REQUIRE(file.good());
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

} // namespace

TEST_CASE("programs are the ones in the papers", "[program]") {
  CHECK(text(naive(), {3, 2}) == golden("naive-3x2.txt"));
  CHECK(text(gpipe(), {4, 4}) == golden("gpipe-4x4.txt"));
  CHECK(text(one_f_one_b(), {4, 6}) == golden("1f1b-4x6.txt"));
  CHECK(text(chimera(), {4, 4}) == golden("chimera-4x4.txt"));
  CHECK(text(chimera(), {4, 6}) == golden("chimera-4x6.txt"));
  CHECK(text(pipedream(), {3, 4}) == golden("pipedream-3x4.txt"));
  CHECK(text(two_bw(), {2, 2, 3}) == golden("2bw-2x2x3.txt"));
}

TEST_CASE("a flush schedule repeats its batch, later microbatches in place of earlier",
          "[program]") {
  for (const auto& sch : {naive(), gpipe(), one_f_one_b(), chimera()}) {
    const auto once = generate(sch, {4, 6, 1}, 1);
    const auto thrice = generate(sch, {4, 6, 3}, 1);
    REQUIRE(thrice.size() == 3 * once.size());
    for (std::size_t i = 0; i < thrice.size(); ++i) {
      auto expected = once[i % once.size()];
      expected.microbatch += 6 * static_cast<int>(i / once.size());
      CHECK(thrice[i] == expected);
    }
  }
}

TEST_CASE("what remains at the end of a stream is updated as a smaller minibatch",
          "[program]") {
  const auto program = generate(pipedream(3), {2, 4, 2}, 0);
  int updates = 0;
  for (const auto& a : program)
    updates += a.what == op::update;
  CHECK(updates == 3);
  CHECK(program.back() == action{op::update, 0, 0, 7});
}
