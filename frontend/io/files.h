// Files read and written whole. A file appears under its name only when all of it is there: temporary name, then
// rename. What is no file, a pipe say, is written as it is.
#pragma once

#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace fusejit::io {

// All bytes of a file or pipe. Throws FileError if it cannot be opened or read, or is a directory or a device,
// DeviceError if it holds more than half of this machine's memory.
std::vector<std::byte> read_file(const std::string& path);
// The same of a file that may be cut: at most `most` bytes are read.
std::vector<std::byte> read_beginning(const std::string& path, std::size_t most);

// Throws the FileError that NewFile(path) would throw; for paths that are written only after much work.
void check_writable(const std::string& path);

// A file under construction: invisible until commit(), removed again if commit() is never reached.
class NewFile {
 public:
  explicit NewFile(std::string path);
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile();
  void write(std::span<const std::byte> bytes);
  std::int64_t written() const { return written_; }
  // Flushes to disk and renames. Throws FileError; then nothing has changed under the name.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;
  std::string path_, temporary_;  // temporary_ is empty if path_ is no file
  std::FILE* file_ = nullptr;
  std::int64_t written_ = 0;
};

// A whole file at once.
void write_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace fusejit::io
