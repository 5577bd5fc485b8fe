// NVIDIA's libraries where `./dev setup --cuda` puts them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ir/base/cuda_libraries.h"

namespace fusejit {
namespace {

namespace fs = std::filesystem;

// An environment variable for as long as the object lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) had_ = true, before_ = before;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Environment() { had_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  bool had_ = false;
  std::string before_;
};

TEST(CudaLibraries, AreLookedForByTheLoaderThenInTheCache) {
  const fs::path root = fs::temp_directory_path() / ("fusejit-libraries-" + std::to_string(getpid()));
  const fs::path wheels = root / "fusejit/cuda/nvidia";
  for (const char* folder : {"b/lib", "a/lib", "c"}) fs::create_directories(wheels / folder);
  std::ofstream(wheels / "a/lib/libx.so.1") << "x";
  std::ofstream(wheels / "b/lib/libx.so.1") << "x";
  std::ofstream(wheels / "b/lib/liby.so.1") << "y";
  using Names = std::vector<std::string>;
  const Names both = {"libx.so.1", (wheels / "a/lib/libx.so.1").string(), (wheels / "b/lib/libx.so.1").string()};
  {
    const Environment cache("XDG_CACHE_HOME", root.c_str());
    EXPECT_EQ(ir::cuda_library_names("libx.so.1"), both);
    EXPECT_EQ(ir::cuda_library_names("liby.so.1"), (Names{"liby.so.1", (wheels / "b/lib/liby.so.1").string()}));
    EXPECT_EQ(ir::cuda_library_names("libz.so.1"), Names{"libz.so.1"});
  }
  const Environment cache("XDG_CACHE_HOME", nullptr);
  {
    fs::create_directories(root / "home");
    fs::create_directory_symlink(root, root / "home/.cache");
    const Environment home("HOME", (root / "home").c_str());
    EXPECT_EQ(ir::cuda_library_names("libx.so.1").size(), 3u);
  }
  const Environment home("HOME", nullptr);
  EXPECT_EQ(ir::cuda_library_names("libx.so.1"), Names{"libx.so.1"}) << "no home, no cache";
  fs::remove_all(root);
}

}  // namespace
}  // namespace fusejit
