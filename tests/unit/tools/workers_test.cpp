// Workers that crash, that are stopped, and that are killed while they have nothing to do: each costs the item that it
// had, and nobody waits for it. A shell stands in for the worker.
#include "tools/fusejit/workers.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

namespace fusejit::tools {
namespace {

using Json = Workers::Json;

// Says who it is, or does to itself what the item says.
const std::vector<std::string> kCommand = {"/bin/sh", "-c",
                                           R"(while read -r line; do case "$line" in
*crash*) kill -SEGV $$;;
*stop*) kill -STOP $$;;
*die*) kill -KILL $$;;
*leave*) exit 3;;
*slow*) sleep 0.3; echo "{\"me\": $$}";;
*mute*) echo nothing;;
*) echo "{\"me\": $$}";;
esac; done)"};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(Workers, CostTheirItemAlone) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::string> errors;
  int done = 0;
  Workers workers(kCommand, 2, /*timeout_seconds=*/1);
  const std::vector<std::string> what = {"a", "crash", "b", "stop", "c", "die", "leave", "mute", "d", "e", "f"};
  for (const std::string& item : what) {
    workers.add(Json{{"item", item}}, [&](const Json& answer) {
      answer.contains("error") ? errors.push_back(answer.at("error")) : void(++done);
    });
  }
  EXPECT_TRUE(workers.run([] { return false; }, [] {}));
  EXPECT_EQ(done, 6);
  std::sort(errors.begin(), errors.end());
  const std::vector<std::string> expected = {
      "it took longer than 1 s", "its worker ended with exit code 3", "its worker was ended by Killed",
      "its worker was ended by Segmentation fault", "the worker's answer cannot be read"};
  EXPECT_EQ(errors, expected);
  EXPECT_LT(seconds_since(start), 5);
}

// The quick one of two workers has nothing to do when it is killed, and is given more afterwards.
TEST(Workers, ThatAreKilledWithNothingToDoCostNothing) {
  std::vector<std::string> errors;
  pid_t idle = -1;
  int done = 0;
  Workers workers(kCommand, 2, 20);
  const auto count = [&](const Json& answer) {
    answer.contains("error") ? errors.push_back(answer.at("error")) : void(++done);
  };
  workers.add({{"item", "slow"}}, [&](const Json& answer) {
    count(answer);
    for (int i = 0; i < 4; ++i) workers.add({{"item", "more"}}, count);
  });
  workers.add({{"item", "quick"}}, [&](const Json& answer) {
    count(answer);
    idle = answer.at("me");
    ::kill(idle, SIGKILL);
  });
  EXPECT_TRUE(workers.run([] { return false; }, [] {}));
  EXPECT_EQ(errors, std::vector<std::string>());
  EXPECT_EQ(done, 6);
}

TEST(Workers, ThatAreStoppedWithNothingToDoAreNotWaitedFor) {
  const auto start = std::chrono::steady_clock::now();
  {
    Workers workers(kCommand, 1, 20);
    workers.add({{"item", "quick"}}, [&](const Json& answer) { ::kill(answer.at("me"), SIGSTOP); });
    EXPECT_TRUE(workers.run([] { return false; }, [] {}));
    ::alarm(20);  // instead of waiting for ever
  }
  ::alarm(0);
  EXPECT_LT(seconds_since(start), 5);
}

}  // namespace
}  // namespace fusejit::tools
