#include "runtime/disk/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace fusejit::runtime::disk {
namespace {

template <typename Call>
auto uninterrupted(const Call& call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

std::string reason(const char* what, const std::string& name) {
  return fmt::format("{} {}: {}", what, name, std::strerror(errno));
}

std::string temporary_name() {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) {
    random = static_cast<std::uint64_t>(::getpid()) << 32 ^ reinterpret_cast<std::uintptr_t>(&random);
  }
  return fmt::format(".{:016x}.tmp", random);
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = uninterrupted([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Handle checked_folder(Handle folder, const std::string& name, Trust trust, std::string& why) {
  struct stat status = {};
  if (!folder && errno == ENOENT) return Handle();
  if (!folder && (errno == ENOTDIR || errno == ELOOP))
    return why = fmt::format("{} is no folder, or a link to one", name), Handle();
  if (!folder) return why = reason("cannot open", name), Handle();
  if (::fstat(folder.get(), &status) != 0) return why = reason("cannot look at", name), Handle();
  if (const std::string untrusted = why_untrusted(status, trust); !untrusted.empty())
    return why = fmt::format("{} {}", name, untrusted), Handle();
  return folder;
}

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// mkdir -p: the folders above get the same mode. One that is there is as good as one that was made. 0, or the first
// error, which is the cause of those that follow.
int make_folders(const std::string& path) {
  int first = 0;
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    if (::mkdir(path.substr(0, end).c_str(), 0700) != 0 && errno != EEXIST && first == 0) first = errno;
    if (end == std::string::npos) break;
  }
  return first;
}

}  // namespace

Handle::Handle(Handle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Handle& Handle::operator=(Handle other) noexcept { return std::swap(fd_, other.fd_), *this; }
Handle::~Handle() { close(); }
bool Handle::close() {
  const int fd = std::exchange(fd_, -1);
  return fd < 0 || ::close(fd) == 0 || errno == EINTR;
}

std::string why_untrusted(const struct stat& status, Trust trust) {
  if (trust == Trust::shared) return "";
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    return fmt::format("belongs to another user ({})", status.st_uid);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fmt::format("can be written by others (mode {:04o})", status.st_mode & 07777);
  return "";
}

Handle open_folder(const std::string& path, Trust trust, bool create, std::string& why) {
  const auto open = [&] { return Handle(uninterrupted([&] { return ::open(path.c_str(), kFolder); })); };
  Handle folder = open();
  if (!folder && errno == ENOENT && create) {
    const int error = make_folders(path);
    folder = open();
    if (!folder) return errno = error != 0 ? error : errno, why = reason("cannot make", path), Handle();
  }
  return checked_folder(std::move(folder), path, trust, why);
}

Handle open_folder_in(const Handle& parent, const std::string& name, Trust trust, bool create, std::string& why) {
  const auto open = [&] {
    return Handle(uninterrupted([&] { return ::openat(parent.get(), name.c_str(), kFolder); }));
  };
  Handle folder = open();
  if (!folder && errno == ENOENT && create && ::mkdirat(parent.get(), name.c_str(), 0700) == 0) folder = open();
  if (!folder && errno == EEXIST) folder = open();  // another process was faster
  return checked_folder(std::move(folder), name, trust, why);
}

std::optional<std::string> read_file(const Handle& folder, const std::string& name, Trust trust, std::size_t most,
                                     std::string& why, struct stat* status) {
  const auto fail = [&](std::string sentence) { return why = std::move(sentence), std::nullopt; };
  const Handle file(uninterrupted(
      [&] { return ::openat(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK); }));
  if (!file) return errno == ENOENT ? std::nullopt : fail(reason("cannot open", name));
  struct stat here = {};
  if (::fstat(file.get(), &here) != 0) return fail(reason("cannot look at", name));
  if (!S_ISREG(here.st_mode)) return fail(name + " is no file");
  if (const std::string untrusted = why_untrusted(here, trust); !untrusted.empty())
    return fail(fmt::format("{} {}", name, untrusted));
  if (here.st_size < 0 || static_cast<std::uint64_t>(here.st_size) > most)
    return fail(fmt::format("{} has {} bytes, at most {} are read", name, here.st_size, most));
  // read(), not mmap(): where a network's folder fails, that is an error here and not a signal.
  std::string bytes(static_cast<std::size_t>(here.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t count = uninterrupted([&] { return ::read(file.get(), bytes.data() + have, bytes.size() - have); });
    if (count < 0) return fail(reason("cannot read", name));
    if (count == 0) break;
    have += static_cast<std::size_t>(count);
  }
  bytes.resize(have);
  if (status) *status = here;
  return bytes;
}

bool write_file(const Handle& folder, const std::string& name, std::string_view bytes, bool durable, std::string& why) {
  const std::string temporary = temporary_name();
  Handle file(uninterrupted([&] {
    return ::openat(folder.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  }));
  if (!file) return why = reason("cannot make a file for", name), false;
  const char* failed = nullptr;
  if (!write_all(file.get(), bytes)) failed = "cannot write";
  if (!failed && durable && ::fsync(file.get()) != 0) failed = "cannot write";
  if (failed) why = reason(failed, name);
  if (!file.close() && !failed) failed = "cannot write", why = reason(failed, name);
  if (!failed && ::renameat(folder.get(), temporary.c_str(), folder.get(), name.c_str()) != 0)
    failed = "cannot rename a file to", why = reason(failed, name);
  if (failed) ::unlinkat(folder.get(), temporary.c_str(), 0);
  if (!failed && durable) ::fsync(folder.get());
  return failed == nullptr;
}

bool is_entry(std::string_view name) {
  constexpr std::string_view kEnd = ".entry";
  if (name.size() != 49 + kEnd.size() || !name.ends_with(kEnd) || name[16] != '-') return false;
  name.remove_suffix(kEnd.size());
  return name.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

bool is_temporary(std::string_view name) { return name.starts_with('.') && name.ends_with(".tmp"); }

}  // namespace fusejit::runtime::disk
