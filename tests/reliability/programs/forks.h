// Children of fork() and threads, all of which compute the same graphs and must agree.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace forks {

// The hashes of graphs [first, first + count), in one text.
using Hashes = std::function<std::string(int first, int count)>;

struct Child {
  pid_t process = -1;
  int said = -1;
};

// What hangs is ended by SIGALRM.
inline Child start(const Hashes& hashes, int count) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const Child child{::fork(), ends[0]};
  if (child.process == 0) {
    ::alarm(30);
    const std::string text = hashes(0, count);
    std::exit(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  return child;
}

inline bool agrees(const Child& child, const std::string& right) {
  std::string text;
  char block[4096];
  for (ssize_t count; (count = ::read(child.said, block, sizeof block)) > 0;)
    text.append(block, static_cast<std::size_t>(count));
  ::close(child.said);
  int status = 0;
  ::waitpid(child.process, &status, 0);
  if (status != 0) std::fprintf(stderr, "a child ended with status %d\n", status);
  if (text != right) std::fprintf(stderr, "a child computed something else\n");
  return status == 0 && text == right;
}

// `when`: "before" the first use of the library, "after" it, or "busy": while threads compile.
inline bool run(const std::string& when, int children, int count, const Hashes& hashes) {
  if (when == "after") hashes(0, count / 2);
  std::atomic<bool> stop{false};
  std::atomic<int> next{100};
  std::vector<std::thread> threads;
  for (int t = 0; t < (when == "busy" ? 3 : 0); ++t) {
    threads.emplace_back([&] {
      while (!stop) hashes(next++, 1);
    });
  }
  std::vector<Child> started;
  for (int i = 0; i < children; ++i) started.push_back(start(hashes, count));
  const std::string right = hashes(0, count);
  bool all = true;
  for (const Child& child : started) all = agrees(child, right) && all;
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return all;
}

}  // namespace forks
