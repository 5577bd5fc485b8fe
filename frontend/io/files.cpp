#include "frontend/io/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "fusejit/error.h"

namespace fusejit::io {

std::vector<std::byte> read_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw FileError(fmt::format("{}: is a directory, not a file", path));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw FileError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  std::vector<std::byte> bytes;
  const auto expected = std::filesystem::file_size(path, error);
  if (!error) bytes.reserve(expected);
  std::byte block[1 << 16];
  while (const std::size_t count = std::fread(block, 1, sizeof block, file.get())) {
    bytes.insert(bytes.end(), block, block + count);
  }
  if (std::ferror(file.get())) throw FileError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return bytes;
}

NewFile::NewFile(std::string path) : path_(std::move(path)) {
  static std::atomic<int> next{0};  // two threads of one process may write the same name
  temporary_ = fmt::format("{}.{}.{}.tmp", path_, ::getpid(), next.fetch_add(1));
  file_ = std::fopen(temporary_.c_str(), "wb");
  if (!file_) throw FileError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
}

NewFile::~NewFile() {
  if (!file_) return;
  std::fclose(file_);
  ::unlink(temporary_.c_str());
}

void NewFile::fail(const char* what) const {
  throw FileError(fmt::format("{}: cannot be {}: {}", path_, what, std::strerror(errno)));
}

void NewFile::write(std::span<const std::byte> bytes) {
  if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail("written");
  written_ += static_cast<std::int64_t>(bytes.size());
}

void NewFile::commit() {
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) fail("written");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("put in place");
  std::fclose(std::exchange(file_, nullptr));
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  NewFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace fusejit::io
