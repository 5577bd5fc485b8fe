// Files as a clumsy user names them: directories, devices, pipes, links, nothing.
#include "frontend/io/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "fusejit/error.h"
#include "tests/support/error_of.h"

namespace fusejit::io {
namespace {

namespace fs = std::filesystem;
using testing::error_of;

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("fusejit_files_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static void write(const std::string& path, std::string_view text) {
    write_file(path, std::as_bytes(std::span(text.data(), text.size())));
  }
  static std::string read(const std::string& path) {
    const std::vector<std::byte> bytes = read_file(path);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  fs::path folder_;
};

TEST_F(Files, AFileIsReplacedWhole) {
  write(path("a"), "one");
  write(path("a"), "two!");
  EXPECT_EQ(read(path("a")), "two!");
  {
    NewFile unfinished(path("a"));
    unfinished.write(std::as_bytes(std::span("three", 5)));
  }
  EXPECT_EQ(read(path("a")), "two!");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Files, ALinkStaysALink) {
  write(path("a"), "one");
  fs::create_symlink("a", path("link"));
  write(path("link"), "two");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read(path("a")), "two");
}

TEST_F(Files, APipeStaysAPipe) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  check_writable(path("pipe"));  // does not open it: this would wait for a reader
  std::string got;
  std::thread reader([&] { got = read(path("pipe")); });
  write(path("pipe"), "through");
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

TEST_F(Files, AFullDeviceIsSaidAndStaysADevice) {
  if (!fs::is_character_file("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  EXPECT_EQ(error_of<FileError>([] { write("/dev/full", "text"); }),
            "/dev/full: cannot be written: No space left on device");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Files, WhatIsNoFileIsNotRead) {
  EXPECT_EQ(error_of<FileError>([] { read_file("/dev/zero"); }), "/dev/zero: is a device, not a file");
  EXPECT_EQ(error_of<FileError>([&] { read_file(folder_.string()); }),
            folder_.string() + ": is a directory, not a file");
  EXPECT_EQ(error_of<FileError>([] { read_file(""); }), "the name of a file is empty");
  EXPECT_EQ(error_of<FileError>([&] { read_file(path("no")); }),
            path("no") + ": cannot be opened: No such file or directory");
}

TEST_F(Files, WhatHoldsTooMuchIsNotRead) {
  write(path("sparse"), "x");
  fs::resize_file(path("sparse"), std::uintmax_t{1} << 42);
  EXPECT_THROW(read_file(path("sparse")), DeviceError);
  EXPECT_EQ(read_beginning(path("sparse"), 100).size(), 100u);
}

TEST_F(Files, WhetherAPathCanBeWrittenIsKnownBefore) {
  check_writable(path("new"));
  EXPECT_EQ(entries(), 0u) << "nothing is left behind";
  EXPECT_EQ(error_of<FileError>([&] { check_writable(folder_.string()); }),
            folder_.string() + ": is a directory, not a file");
  EXPECT_EQ(error_of<FileError>([&] { check_writable(path("no/new")); }),
            path("no/new") + ": cannot be written: No such file or directory");
  EXPECT_EQ(error_of<FileError>([] { check_writable(""); }), "the name of a file is empty");
}

}  // namespace
}  // namespace fusejit::io
