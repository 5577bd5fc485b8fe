// Own definitions of what runtime/disk calls: the program's come before the C library's. Each is the system call
// itself, unless a fault is waiting for it.
#include "tests/support/faulty_files/faulty_files.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace fusejit::testing {
namespace {

// No std::string: these functions are called before main and after it.
char folder[512];
std::atomic<bool> is_on{false}, kills{false}, for_good{false};
std::atomic<long> calls_left{0}, bytes_left{0};
Fault fault;
std::atomic<const char*> hit_call{nullptr};

// Where the file of a descriptor lies, or "".
void place_of(int fd, char* place, std::size_t size) {
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long length = ::syscall(SYS_readlinkat, AT_FDCWD, link, place, size - 1);
  place[length > 0 ? length : 0] = '\0';
}

bool is_below(int fd, const char* path) {
  if (!is_on) return false;
  char place[1024] = "";
  if (path && path[0] == '/') return std::strncmp(path, folder, std::strlen(folder)) == 0;
  if (fd >= 0) place_of(fd, place, sizeof place);
  return std::strncmp(place, folder, std::strlen(folder)) == 0;
}

bool meets_fault(const char* call, int fd, const char* path = nullptr) {
  if (!is_below(fd, path) || kills) return false;
  const long left = calls_left--;
  if (left > 0 || (left < 0 && !for_good)) return false;
  hit_call = call;
  return true;
}

template <typename... Arguments>
long done(long number, Arguments... arguments) {
  return ::syscall(number, arguments...);
}

// The call, or its fault.
template <typename Call>
long run(const char* name, int fd, const char* path, const Call& call) {
  if (!meets_fault(name, fd, path) || fault.kind == Fault::partial) return call();
  if (fault.kind == Fault::lost_reply) call();
  errno = fault.error;
  return -1;
}

template <typename Call>
long transfer(const char* name, int fd, std::size_t count, const Call& call) {
  if (!meets_fault(name, fd)) return call(count);
  if (fault.kind == Fault::partial) return call(count > 1 ? count / 2 : count);
  if (fault.kind == Fault::lost_reply) call(count);
  errno = fault.error;
  return -1;
}

void begin(const std::string& where) {
  std::snprintf(folder, sizeof folder, "%s", where.c_str());
  hit_call = nullptr;
}

}  // namespace

FaultyFiles::FaultyFiles(const std::string& where, int at, Fault what, bool stays) {
  begin(where);
  fault = what, calls_left = at, for_good = stays;
  is_on = true;
}
FaultyFiles::~FaultyFiles() { is_on = false; }
std::string FaultyFiles::hit() const { return hit_call ? hit_call.load() : ""; }

void kill_after(const std::string& where, std::size_t bytes) {
  begin(where);
  bytes_left = static_cast<long>(bytes), kills = true, is_on = true;
}

}  // namespace fusejit::testing

namespace t = fusejit::testing;

extern "C" {

int openat(int at, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return static_cast<int>(t::run("openat", at, path, [&] { return t::done(SYS_openat, at, path, flags, mode); }));
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return static_cast<int>(t::run("open", -1, path, [&] { return t::done(SYS_openat, AT_FDCWD, path, flags, mode); }));
}
// The number of the descriptor is free afterwards in any case.
int close(int fd) {
  const bool fails = t::meets_fault("close", fd) && t::fault.kind != t::Fault::partial;
  const long result = t::done(SYS_close, fd);
  return fails ? (errno = t::fault.error, -1) : static_cast<int>(result);
}
ssize_t read(int fd, void* to, size_t count) {
  return t::transfer("read", fd, count, [&](size_t most) { return t::done(SYS_read, fd, to, most); });
}
ssize_t write(int fd, const void* from, size_t count) {
  if (t::kills && t::is_below(fd, nullptr)) {
    const size_t most = std::min(count, static_cast<size_t>(t::bytes_left));
    t::done(SYS_write, fd, from, most);
    t::bytes_left -= static_cast<long>(most);
    if (t::bytes_left == 0) ::kill(::getpid(), SIGKILL);
    return static_cast<ssize_t>(most);
  }
  return t::transfer("write", fd, count, [&](size_t most) { return t::done(SYS_write, fd, from, most); });
}
int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  if (command != F_OFD_SETLK) return static_cast<int>(t::done(SYS_fcntl, fd, command, argument));
  return static_cast<int>(t::run("fcntl", fd, nullptr, [&] { return t::done(SYS_fcntl, fd, command, argument); }));
}
int fsync(int fd) {  // no test pulls the plug, and disks take their time
  return static_cast<int>(t::run("fsync", fd, nullptr, [&] { return t::is_on ? 0 : t::done(SYS_fsync, fd); }));
}
int fstat(int fd, struct stat* status) {
  return static_cast<int>(t::run("fstat", fd, nullptr, [&] { return t::done(SYS_fstat, fd, status); }));
}
int fstatat(int at, const char* path, struct stat* status, int flags) {
  return static_cast<int>(
      t::run("fstatat", at, path, [&] { return t::done(SYS_newfstatat, at, path, status, flags); }));
}
int mkdir(const char* path, mode_t mode) {
  return static_cast<int>(t::run("mkdir", -1, path, [&] { return t::done(SYS_mkdir, path, mode); }));
}
int mkdirat(int at, const char* path, mode_t mode) {
  return static_cast<int>(t::run("mkdirat", at, path, [&] { return t::done(SYS_mkdirat, at, path, mode); }));
}
int renameat(int from, const char* path, int to, const char* name) {
  return static_cast<int>(t::run("renameat", from, path, [&] { return t::done(SYS_renameat, from, path, to, name); }));
}
int unlinkat(int at, const char* path, int flags) {
  return static_cast<int>(t::run("unlinkat", at, path, [&] { return t::done(SYS_unlinkat, at, path, flags); }));
}
int faccessat(int at, const char* path, int mode, int flags) {
  return static_cast<int>(
      t::run("faccessat", at, path, [&] { return t::done(SYS_faccessat2, at, path, mode, flags); }));
}
int utimensat(int at, const char* path, const struct timespec* times, int flags) {
  return static_cast<int>(
      t::run("utimensat", at, path, [&] { return t::done(SYS_utimensat, at, path, times, flags); }));
}

}  // extern "C"
