#include "tools/fusejit/workers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "tools/exit_code.h"

extern char** environ;

namespace fusejit::tools {

using Clock = std::chrono::steady_clock;

struct Workers::Worker {
  pid_t process = -1;
  int to = -1, from = -1;
  std::string unread, unwritten;
  std::unique_ptr<Item> item;  // being worked on
  Clock::time_point begun;

  void close_pipes() {
    if (to >= 0) ::close(to);
    if (from >= 0) ::close(from);
    to = from = -1;
    unread.clear(), unwritten.clear();
  }
};

Workers::Workers(std::vector<std::string> command, int count, double timeout_seconds)
    : command_(std::move(command)), count_(count), timeout_(timeout_seconds) {
  ::signal(SIGPIPE, SIG_IGN);  // a worker that has ended is seen by what its pipe says
}

Workers::~Workers() {
  for (const auto& worker : workers_) {
    if (worker->process < 0) continue;
    ::kill(worker->process, SIGKILL);  // one that was stopped would not see its input end
    worker->close_pipes();
    int status = 0;
    ::waitpid(worker->process, &status, 0);
  }
}

void Workers::add(Json item, Answered answered, bool front) {
  Item added{std::move(item), std::move(answered)};
  front ? items_.push_front(std::move(added)) : items_.push_back(std::move(added));
}

bool Workers::start(Worker& worker) {
  int input[2], output[2];
  if (::pipe2(input, O_CLOEXEC) != 0) return false;
  if (::pipe2(output, O_CLOEXEC) != 0) return ::close(input[0]), ::close(input[1]), false;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& argument : command_) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int error = ::posix_spawn(&worker.process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(input[0]), ::close(output[1]);
  worker.to = input[1], worker.from = output[0];
  ::fcntl(worker.to, F_SETFL, O_NONBLOCK);
  ::fcntl(worker.from, F_SETFL, O_NONBLOCK);
  if (error == 0) return true;
  worker.process = -1;
  worker.close_pipes();
  errno = error;
  return false;
}

void Workers::give(Worker& worker) {
  worker.item = std::make_unique<Item>(std::move(items_.front()));
  items_.pop_front();
  worker.begun = Clock::now();
  if (worker.process >= 0 && ::waitpid(worker.process, nullptr, WNOHANG) == worker.process) {
    worker.process = -1;  // it ended while it had nothing to do, which costs nothing
    worker.close_pipes();
  }
  if (worker.process < 0 && !start(worker)) {
    const std::unique_ptr<Item> item = std::move(worker.item);
    item->answered({{"error", fmt::format("no worker can be started: {}", std::strerror(errno))}, {"code", kFile}});
    return;
  }
  worker.unwritten = worker.item->work.dump() + "\n";
}

// What there is to write and to read, as far as the pipes take it now.
void Workers::exchange(Worker& worker) {
  while (!worker.unwritten.empty()) {
    const ssize_t count = ::write(worker.to, worker.unwritten.data(), worker.unwritten.size());
    if (count <= 0) break;  // full, or its reader is gone: the other pipe will say so
    worker.unwritten.erase(0, static_cast<std::size_t>(count));
  }
  char bytes[1 << 16];
  for (;;) {
    const ssize_t count = ::read(worker.from, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // nothing yet
    if (count == 0) return end(worker, farewell(worker));
    worker.unread.append(bytes, static_cast<std::size_t>(count));
    if (worker.unread.back() == '\n') break;  // one answer an item
  }
  Json answer = Json::parse(worker.unread, nullptr, /*allow_exceptions=*/false);
  worker.unread.clear();
  if (!worker.item) return;
  if (!answer.is_object()) answer = {{"error", "the worker's answer cannot be read"}, {"code", kInternal}};
  const std::unique_ptr<Item> item = std::move(worker.item);
  item->answered(answer);
}

// It is gone: what of it is known.
std::string Workers::farewell(Worker& worker) {
  int status = 0;
  ::waitpid(worker.process, &status, 0);
  worker.process = -1;
  if (WIFSIGNALED(status)) return fmt::format("its worker was ended by {}", ::strsignal(WTERMSIG(status)));
  return fmt::format("its worker ended with exit code {}", WEXITSTATUS(status));
}

void Workers::end(Worker& worker, const std::string& why) {
  worker.close_pipes();
  if (!worker.item) return;
  const std::unique_ptr<Item> item = std::move(worker.item);
  item->answered({{"error", why}, {"code", kInternal}});
}

void Workers::start() {
  while (static_cast<int>(workers_.size()) < count_) workers_.push_back(std::make_unique<Worker>());
  for (const auto& worker : workers_) {
    if (worker->process < 0) static_cast<void>(start(*worker));  // who cannot be started is tried again with its work
  }
}

bool Workers::run(const std::function<bool()>& stops, const std::function<void()>& tick) {
  while (static_cast<int>(workers_.size()) < count_) workers_.push_back(std::make_unique<Worker>());
  for (;;) {
    const bool stopped = stops();
    std::vector<pollfd> waiting;
    std::vector<Worker*> of;
    for (const auto& worker : workers_) {
      while (!worker->item && !items_.empty() && !stopped) give(*worker);
      if (worker->process < 0 || (!worker->item && worker->unread.empty())) continue;
      waiting.push_back({worker->from, POLLIN, 0}), of.push_back(worker.get());
      if (!worker->unwritten.empty()) waiting.push_back({worker->to, POLLOUT, 0}), of.push_back(worker.get());
    }
    if (waiting.empty()) return items_.empty();
    ::poll(waiting.data(), waiting.size(), 100);
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0 && of[i]->process >= 0 && of[i]->item) exchange(*of[i]);
    }
    for (const auto& worker : workers_) {
      if (!worker->item || Clock::now() - worker->begun < timeout_) continue;
      ::kill(worker->process, SIGKILL);
      farewell(*worker);
      end(*worker, fmt::format("it took longer than {:g} s", timeout_.count()));
    }
    tick();
  }
}

}  // namespace fusejit::tools
