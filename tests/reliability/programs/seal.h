// From here on the kernel kills this process for what a compiler in a library must not do: start a program, open a
// socket, or ask for memory that is writable and executable at once.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>

inline void seal() {
  constexpr unsigned kBoth = PROT_WRITE | PROT_EXEC;
  const auto load = [](std::size_t at) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(at));
  };
  const auto kill_if = [](unsigned value, unsigned char otherwise) {
    return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, otherwise);
  };
  const sock_filter kill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  sock_filter program[] = {
      load(offsetof(seccomp_data, nr)),
      kill_if(SYS_execve, 1),
      kill,
      kill_if(SYS_execveat, 1),
      kill,
      kill_if(SYS_socket, 1),
      kill,
      // These have their protection at the same place.
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 2, 0),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pkey_mprotect, 1, 0),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4),
      load(offsetof(seccomp_data, args[2])),
      sock_filter BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kBoth),
      kill_if(kBoth, 1),
      kill,
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {static_cast<unsigned short>(std::size(program)), program};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    std::perror("no seal");
    std::exit(77);
  }
}
