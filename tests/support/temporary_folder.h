// A folder of a test's own, gone at its end with all that is in it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace fusejit::testing {

class TemporaryFolder {
 public:
  // In memory where that is possible: tests that write thousands of files should not wait for a disk.
  TemporaryFolder() {
    const bool has_memory = ::getenv("TMPDIR") == nullptr && ::access("/dev/shm", W_OK | X_OK) == 0;
    const std::filesystem::path parent = has_memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string name = (parent / "fusejit-test-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr) << name;
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  ASSERT_TRUE(out.flush().good()) << path;
}

// Files anywhere below, sorted, of which the name ends so.
inline std::vector<std::string> files_below(const std::string& folder, const std::string& ending = "") {
  std::vector<std::string> files;
  std::error_code gone;  // others may remove what is being listed
  for (std::filesystem::recursive_directory_iterator at(folder, gone), end; !gone && at != end; at.increment(gone)) {
    if (at->is_regular_file(gone) && at->path().string().ends_with(ending)) files.push_back(at->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace fusejit::testing
