// SPDX-License-Identifier: BSD-3-Clause
// The meeting in which an optimizer shard pushes to all parameter servers of the stage.

#include "actors/meetings/server_meeting.hpp"

#include "tests/actors/tiny.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe::server_meeting_test {

TEST_CASE("every server gets a push of the bytes of its share, and all must answer",
          "[meetings][servers]") {
  const auto plan = tiny::replicas("server:async", 3, 1, 10);
  server_meeting meets{plan, {1, 0, 0}};
  CHECK(meets.is_done(server_meeting::answered));
  CHECK_FALSE(meets.waits_for());
  int pushes = 0;
  meets.expect([&] {
    ++pushes;
    return mail::push{
      .data = 1, .samples = 5, .factor = 0.5, .gradients = {}, .to = {}};
  });
  CHECK(pushes == 0); // before the begin
  const auto out = meets.begin(server_meeting::answered);
  CHECK(pushes == 1); // and the same to all
  REQUIRE(out.size() == 3);
  const std::int64_t bytes[] = {12, 12, 16}; // of 10 values
  for (int share = 0; share < 3; ++share) {
    const auto& one = out[static_cast<std::size_t>(share)];
    CHECK(one.to == performer{role::parameter_server, {share, 0, 0}});
    CHECK(one.kind == (share == 1 ? std::nullopt : std::optional{traffic::gradients}));
    CHECK(one.bytes == bytes[share]);
    CHECK(std::get<mail::push>(one.body).data == 1);
    CHECK(std::get<mail::push>(one.body).factor == 0.5);
  }
  const auto answer = [&](int server) {
    CHECK(meets
            .receive({{role::optimizer_shard, {1, 0, 0}},
                      meeting_kind::servers,
                      mail::pulled{server}})
            .empty());
  };
  answer(2);
  answer(0);
  CHECK_FALSE(meets.is_done(server_meeting::answered));
  REQUIRE(meets.waits_for());
  CHECK(meets.waits_for()->input == "a share of the new parameters");
  CHECK(meets.waits_for()->peer == "parameter server of stage 0 (share 1)");
  answer(1);
  CHECK(meets.is_done(server_meeting::answered));
  CHECK_FALSE(meets.waits_for());
}

} // namespace troupe::server_meeting_test
