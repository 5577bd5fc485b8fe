// Profile: where the time and the memory of what runs meanwhile go.
//
//   fj::Profile profile;
//   fj::relu(fj::ones({64, 1024}).eval()).eval();
//   profile.stop();
//   std::cout << profile.table();     // by kernel: calls, time, bytes, GFLOP, how near to what the machine can do
//   profile.trace("profile.json");    // for https://ui.perfetto.dev or chrome://tracing
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fusejit {

// What is counted together in a table.
enum class ProfileBy : std::uint8_t {
  kernel,  // launches of equal kernels for the same ops
  op,      // the op that a kernel is built around: convolutions, products, poolings, sums, the rest
  layer,  // the module that recorded the ops, "layer1.0.conv2"; a kernel that several have a part in counts for that of
          // its convolution or product, else for the innermost; "no layer" where no module was called
  phase   // recording, tracing, scheduling, the disk, code generation, running
};

class Profile {
 public:
  // From here on, in all threads. Several may be taken at a time.
  Profile();
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  // Ends it; otherwise it goes on until it is destroyed. What follows speaks of what was noted so far.
  void stop();

  // What is counted together: a line of a table.
  struct Row {
    std::string name;
    std::vector<std::string> ops;  // of a kernel
    std::int64_t calls = 0;
    double milliseconds = 0;  // of all calls; wall time
    std::int64_t bytes = 0;   // that they read and wrote
    double gflop = 0;
    // The least time that this machine takes for the bytes or for the arithmetic, whichever is longer, by the time it
    // took; 0: not known, as on CUDA devices. Above 1: the bytes were in a cache.
    double of_roofline = 0;
  };
  // The longest first. On a CUDA device times are those of its events; while a profile is taken, kernels are launched
  // one by one, which is slower than the graph that a step is otherwise.
  std::vector<Row> rows(ProfileBy by = ProfileBy::kernel) const;
  // Those as text, the first `most` of them, and what they are together.
  std::string table(ProfileBy by = ProfileBy::kernel, int most = 30) const;
  // Bytes in use by plans at most: arena, arguments and results.
  std::int64_t peak_bytes() const;
  // Everything with its times, as Chrome's trace events: one track a thread, and memory in use. FileError.
  void trace(const std::string& path) const;

 private:
  struct State;
  State* state_;
};

}  // namespace fusejit
