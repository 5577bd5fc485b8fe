// The identity of the planner and the generator, which is part of every key: one byte of their sources, or another
// compiler, makes another one; what does not decide about code makes none.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/unit/disk/entries.h"

namespace fusejit::runtime::disk {
namespace {

std::string identity_of(const std::string& root, const std::string& options) {
  const std::string output = root + ".cpp";
  const std::string command = fmt::format("cmake -DROOT={} -DOUTPUT={} '-DOPTIONS={}' -P {}/cmake/identity.cmake", root,
                                          output, options, FUSEJIT_SOURCE_DIR);
  EXPECT_EQ(std::system(command.c_str()), 0);
  const std::string text = bytes_of(output);
  const std::size_t start = text.find("return \"");
  return start == std::string::npos ? "" : text.substr(start + 8, 32);
}

TEST(Identity, IsAnotherAfterOneByteOfTheSources) {
  TemporaryFolder folder;
  const std::string root = folder / "sources";
  for (const char* name : {"ir", "scheduler", "codegen/x86", "runtime/cudnn", "runtime/disk", "frontend"}) {
    std::filesystem::create_directories(fmt::format("{}/{}", root, name));
    write_bytes(fmt::format("{}/{}/a.cpp", root, name), "constexpr int kTile = 6;  // version 1.0\n");
  }
  const std::string first = identity_of(root, "g++ 12 -O3");
  EXPECT_EQ(first.size(), 32u);
  EXPECT_EQ(identity_of(root, "g++ 12 -O3"), first);
  const auto after = [&](const std::string& name, const std::string& text) {
    const std::string path = root + "/" + name, before = bytes_of(path);
    write_bytes(path, text);
    const std::string identity = identity_of(root, "g++ 12 -O3");
    if (before.empty())
      std::filesystem::remove(path);
    else
      write_bytes(path, before);
    return identity;
  };
  for (const char* name : {"ir/a.cpp", "scheduler/a.cpp", "codegen/x86/a.cpp", "runtime/cudnn/a.cpp"})
    EXPECT_NE(after(name, "constexpr int kTile = 4;  // version 1.0\n"), first) << name;
  EXPECT_NE(after("codegen/b.cpp", ""), first) << "a new file";
  EXPECT_EQ(after("frontend/a.cpp", "other"), first);
  EXPECT_NE(identity_of(root, "g++ 13 -O3"), first);
  std::filesystem::rename(root + "/ir/a.cpp", root + "/ir/b.cpp");
  EXPECT_NE(identity_of(root, "g++ 12 -O3"), first) << "another name";
}

}  // namespace
}  // namespace fusejit::runtime::disk
