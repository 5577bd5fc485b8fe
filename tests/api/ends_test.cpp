// How processes end that use fusejit, and what a child of fork() can do: seen from outside.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace fusejit {
namespace {

// "exit 0", "signal 11"; with what it printed.
std::string outcome(const std::string& mode) {
  const std::string command = std::string(FUSEJIT_ENDS_PROGRAM) + " " + mode + " 2>&1";
  std::FILE* pipe = popen(("exec " + command).c_str(), "r");
  std::string said;
  char block[256];
  while (const std::size_t count = std::fread(block, 1, sizeof block, pipe)) said.append(block, count);
  const int status = pclose(pipe);
  const std::string end = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                              : "exit " + std::to_string(WEXITSTATUS(status));
  return said.empty() ? end : end + ": " + said;
}

TEST(Ends, WhileDetachedThreadsCompile) {
  for (int run = 0; run < 20; ++run) {
    const std::string mode = "threads " + std::to_string(5 + run * 7);
    ASSERT_EQ(outcome(mode), "exit 0") << mode;
  }
}

TEST(Ends, InAStaticObjectThatEvaluates) { EXPECT_EQ(outcome("static"), "exit 0: late\n"); }

TEST(Ends, InAStaticObjectThatWaitsForAThreadThatEvaluates) { EXPECT_EQ(outcome("joined"), "exit 0: late\n"); }

TEST(Ends, ChildrenOfForkCompute) { EXPECT_EQ(outcome("fork"), "exit 0"); }

TEST(Ends, ChildrenOfForkComputeWhileOtherThreadsOfTheParentDo) {
  for (int run = 0; run < 3; ++run) ASSERT_EQ(outcome("busy"), "exit 0");
}

}  // namespace
}  // namespace fusejit
