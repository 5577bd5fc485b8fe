// System calls on files below a folder that fail as disks, networks and other processes make them fail. A program that
// has faulty_files.cpp among its own sources has these in place of the C library's; elsewhere nothing changes.
#pragma once

#include <string>
#include <vector>

namespace fusejit::testing {

struct Fault {
  enum Kind {
    refused,     // the call does nothing and fails
    lost_reply,  // it does what it should, and says that it failed, as on a network
    partial      // of what is read or written, only the first half, and no error
  };
  Kind kind = refused;
  int error = 0;  // errno
};

// While one lives, the `at`-th call below `folder`, from 0, meets the fault.
class FaultyFiles {
 public:
  FaultyFiles(const std::string& folder, int at, Fault fault, bool for_good = false);
  ~FaultyFiles();
  FaultyFiles(const FaultyFiles&) = delete;
  FaultyFiles& operator=(const FaultyFiles&) = delete;
  // "openat", "write": the call that met it, or "" if there were not so many.
  std::string hit() const;
};

// After so many bytes have been written below the folder this process is killed as if by kill -9. Call it in a child.
void kill_after(const std::string& folder, std::size_t bytes);

}  // namespace fusejit::testing
