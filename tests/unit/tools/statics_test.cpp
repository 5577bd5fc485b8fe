// Nothing static of the library is destroyed: threads that outlive main(), and static objects of users, may still
// compute. What would be destroyed registers itself with __cxa_atexit, which the object files say.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace fusejit {
namespace {

TEST(Statics, AreNeverDestroyed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers register more";
#endif
  const std::string folder = FUSEJIT_BINARY_DIR;
  if (!std::filesystem::exists(folder + "/libfusejit_ir.a")) GTEST_SKIP() << "no static libraries in " << folder;
  std::FILE* pipe = popen(("nm -A -u " + folder + "/libfusejit_*.a 2>&1").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string destroyed;
  int lines = 0;
  char line[4096];
  for (; std::fgets(line, sizeof line, pipe); ++lines) {
    const std::string text = line;
    // Those that read protobuf's messages have the streams of its headers, which are flushed at the end.
    const bool has_streams = text.find(":read.cpp.o:") != std::string::npos ||
                             text.find(":tensor_data.cpp.o:") != std::string::npos ||
                             text.find(":onnx.pb.cc.o:") != std::string::npos;
    if (!has_streams && text.find(" __cxa_atexit") != std::string::npos) destroyed += text;
  }
  if (pclose(pipe) != 0 || lines < 1000) GTEST_SKIP() << "nm cannot be run";
  EXPECT_EQ(destroyed, "") << "write `static T& x = *new T(...)` there";
}

}  // namespace
}  // namespace fusejit
