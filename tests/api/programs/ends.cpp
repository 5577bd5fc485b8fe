// What ends_test.cpp runs in a process of its own: how a process ends, and what a child of fork() can do. Exit code 0:
// all as it should be. A hang ends by SIGALRM.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "fusejit/fusejit.h"

namespace {

namespace fj = fusejit;

// A computation that nobody has compiled before: `number` makes its shape and its expression.
bool computes(std::int64_t number) {
  const std::int64_t size = 3 + number % 5000;
  fj::Tensor x = fj::full({size, 70}, 2.0);
  for (std::int64_t n = number; n > 0; n /= 2) x = n % 2 ? fj::sqrt(x * x) : x + 0;
  return fj::sum(x + fj::exp(x * 0)).item<float>() == static_cast<float>(size * 70 * 3);
}

std::atomic<std::int64_t> next_number{1};

void compute_for_ever() {
  for (;;) computes(next_number.fetch_add(1));
}

void sleep_ms(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

// Made before main and before the library's first use, so it goes after what that made.
struct Late {
  bool evaluates = false;
  std::thread* joined = nullptr;
  std::atomic<bool> stop{false};
  ~Late() {
    if (joined) stop = true, joined->join();
    if (evaluates && !(computes(next_number++) && computes(next_number++))) std::_Exit(1);
    if (evaluates || joined) std::puts("late");
  }
} late;

int threads_at_exit(int milliseconds) {
  for (int t = 0; t < 4; ++t) std::thread(compute_for_ever).detach();
  while (next_number < 10) sleep_ms(1);
  sleep_ms(milliseconds);
  return 0;
}

int static_evaluates() {
  late.evaluates = true;
  return computes(next_number++) ? 0 : 1;
}

int static_joins() {
  late.joined = new std::thread([] {
    while (!late.stop) computes(next_number++);
  });
  sleep_ms(30);
  return 0;
}

// 0 if the child found everything right.
int in_child(const std::function<bool()>& right) {
  const pid_t child = fork();
  if (child == 0) std::exit(right() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

int fork_after_use() {
  fj::set_options({.threads = 4});
  const fj::Tensor kept = fj::full({512, 512}, 0.5) + 1;
  if (fj::sum(kept).item<float>() != 512 * 512 * 1.5f) return 1;
  const int failed = in_child([&] {
    const bool same = fj::sum(kept).item<float>() == 512 * 512 * 1.5f;  // the plan of the parent
    const bool again = fj::sum(kept * kept).item<float>() == 512 * 512 * 2.25f;
    return same && again && computes(77) && in_child([] { return computes(78); }) == 0;
  });
  return failed || !computes(79);
}

int fork_while_busy() {
  fj::set_options({.threads = 3});
  for (int t = 0; t < 3; ++t) std::thread(compute_for_ever).detach();
  int failed = 0;
  for (int f = 0; f < 10 && failed == 0; ++f) {
    sleep_ms(5);
    failed = in_child([&] { return computes(4000 + f) && computes(2000 + f); });
  }
  return failed;
}

}  // namespace

int main(int argc, char** argv) try {
  alarm(60);
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "threads") return threads_at_exit(argc > 2 ? std::atoi(argv[2]) : 20);
  if (mode == "static") return static_evaluates();
  if (mode == "joined") return static_joins();
  if (mode == "fork") return fork_after_use();
  if (mode == "busy") return fork_while_busy();
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "ends: %s\n", error.what());
  return 3;
}
