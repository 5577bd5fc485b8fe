// Processes of reliability_worker (programs/worker.cpp), and what they found.
#pragma once

#include <sys/types.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace fusejit::testing {

using Variables = std::map<std::string, std::string>;

struct Surroundings {
  std::string cache;         // FUSEJIT_CACHE_DIR; "": not set
  Variables variables = {};  // all others, beside PATH
  std::string folder = "/";  // the current one
  uid_t user = 0;            // 0: as this process
  std::string program = {};  // another one, or a copy of the worker; "": itself
};

struct Outcome {
  std::string end;                    // "exit 0", "signal 9", "stopped": it took more than a minute, ten by night
  std::map<int, std::string> hashes;  // of each graph's result
  nlohmann::json counts;
  std::string output;
  std::vector<std::string> log;  // and what else it said
  double seconds = 0;

  int count(const char* name) const { return counts.is_object() ? counts.value(name, -1) : -1; }
};

class Worker {
 public:
  Worker(const std::vector<std::string>& arguments, const Surroundings& surroundings);
  ~Worker();
  Worker(Worker&& other) noexcept;
  Worker& operator=(Worker&&) = delete;
  pid_t process() const { return process_; }
  void kill_group() const;  // it, and whatever it started
  bool is_running();
  Outcome wait();

 private:
  std::unique_ptr<TemporaryFolder> said_ = std::make_unique<TemporaryFolder>();
  pid_t process_ = -1;
  int status_ = 0;
  bool has_ended_ = false;
  double start_ = 0;
};

Outcome run_worker(const std::vector<std::string>& arguments, const Surroundings& surroundings);
inline Outcome compute(int count, const Surroundings& surroundings) {
  return run_worker({"compute", "0", std::to_string(count)}, surroundings);
}
// What graphs 0 to count - 1 compute without any cache.
const std::map<int, std::string>& right_hashes(int count);

double seconds_now();

// Fails the test unless the process ended well, said nothing and computed what is right.
void expect_right(const Outcome& outcome, int count);

// Entries of a cache folder that cannot be read.
int damaged_entries(const std::string& folder);

}  // namespace fusejit::testing
