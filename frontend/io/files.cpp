#include "frontend/io/files.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "fusejit/error.h"
#include "runtime/cpu/memory.h"

namespace fusejit::io {

namespace {

namespace fs = std::filesystem;

void check_path(const std::string& path, fs::file_type type) {
  if (path.empty()) throw FileError("the name of a file is empty");
  if (type == fs::file_type::directory) throw FileError(fmt::format("{}: is a directory, not a file", path));
}

// Exists and is neither a file nor a directory: nothing can be renamed over it.
bool is_special(fs::file_type type) {
  return type == fs::file_type::character || type == fs::file_type::block || type == fs::file_type::fifo ||
         type == fs::file_type::socket;
}

fs::file_type type_of(const std::string& path) {
  std::error_code error;
  return fs::status(path, error).type();
}

// While one lives, a write beyond the limit on the size of files fails (EFBIG) instead of ending the process (SIGXFSZ),
// so that its temporary file goes.
class FileSizeLimitIsAnError {
 public:
  FileSizeLimitIsAnError() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~FileSizeLimitIsAnError() {
    if (sigismember(&before_, SIGXFSZ) == 1) return;  // the caller's own business
    const int error = errno;
    const timespec now{};
    sigtimedwait(&signal_, nullptr, &now);  // what a write here has left; it is sent to the thread that wrote
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  FileSizeLimitIsAnError(const FileSizeLimitIsAnError&) = delete;
  FileSizeLimitIsAnError& operator=(const FileSizeLimitIsAnError&) = delete;

 private:
  sigset_t signal_, before_;
};

}  // namespace

std::vector<std::byte> read_beginning(const std::string& path, std::size_t most) {
  const fs::file_type type = type_of(path);
  check_path(path, type);
  // A device may have no end.
  if (type == fs::file_type::character || type == fs::file_type::block)
    throw FileError(fmt::format("{}: is a device, not a file", path));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw FileError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  std::vector<std::byte> bytes;
  std::error_code error;
  const auto expected = fs::file_size(path, error);
  if (!error) bytes.reserve(std::min<std::size_t>(expected, most));
  std::byte block[1 << 16];
  while (const std::size_t count = std::fread(block, 1, std::min(sizeof block, most - bytes.size()), file.get()))
    bytes.insert(bytes.end(), block, block + count);
  if (std::ferror(file.get())) throw FileError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return bytes;
}

std::vector<std::byte> read_file(const std::string& path) {
  const std::int64_t most = runtime::machine_memory() / 2;
  const auto refuse = [&] {
    throw DeviceError(fmt::format("cpu: out of memory: {} holds more than {} bytes", path, most));
  };
  std::error_code error;
  if (const auto expected = fs::file_size(path, error); !error && expected > static_cast<std::uintmax_t>(most))
    refuse();
  std::vector<std::byte> bytes = read_beginning(path, static_cast<std::size_t>(most) + 1);
  if (static_cast<std::int64_t>(bytes.size()) > most) refuse();
  return bytes;
}

void check_writable(const std::string& path) {
  if (!is_special(type_of(path))) const NewFile probe(path);  // opening a pipe would be seen by its reader
}

NewFile::NewFile(std::string path) : path_(std::move(path)) {
  const fs::file_type type = type_of(path_);
  check_path(path_, type);
  if (is_special(type)) {
    file_ = std::fopen(path_.c_str(), "wb");
  } else {
    std::error_code error;
    if (fs::is_symlink(path_, error)) {  // the link stays; what it points to is replaced
      const fs::path target = fs::canonical(path_, error);
      if (!error) path_ = target.string();
    }
    static std::atomic<int> next{0};  // two threads of one process may write the same name
    temporary_ = fmt::format("{}.{}.{}.tmp", path_, ::getpid(), next.fetch_add(1));
    file_ = std::fopen(temporary_.c_str(), "wb");
  }
  if (!file_) throw FileError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
}

NewFile::~NewFile() {
  if (!file_) return;
  const FileSizeLimitIsAnError within;
  std::fclose(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void NewFile::fail(const char* what) const {
  throw FileError(fmt::format("{}: cannot be {}: {}", path_, what, std::strerror(errno)));
}

void NewFile::write(std::span<const std::byte> bytes) {
  const FileSizeLimitIsAnError within;
  if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail("written");
  written_ += static_cast<std::int64_t>(bytes.size());
}

void NewFile::commit() {
  const FileSizeLimitIsAnError within;
  if (std::fflush(file_) != 0) fail("written");
  if (!temporary_.empty() && ::fsync(::fileno(file_)) != 0) fail("written");
  if (!temporary_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("put in place");
  std::fclose(std::exchange(file_, nullptr));
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  NewFile file(path);
  file.write(bytes);
  file.commit();
}

}  // namespace fusejit::io
