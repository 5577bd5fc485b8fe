// Processes that work in parallel: a crash, or work without end, costs one item and not the run.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fusejit::tools {

class Workers {
 public:
  using Json = nlohmann::json;
  // What became of an item: the worker's answer; or {"error": sentence, "code": exit code} in its place.
  using Answered = std::function<void(const Json& answer)>;

  // `command`: starts this program as one that answers each line of its standard input with a line on its standard
  // output.
  Workers(std::vector<std::string> command, int count, double timeout_seconds);
  ~Workers();

  // Starts all of them, so that they have loaded their libraries when there is work; otherwise each is when it gets
  // some.
  void start();
  // To be done after what was added before. `front`: before it.
  void add(Json item, Answered answered, bool front = false);
  // Until everything is answered, or `stops` says so: then what is begun is waited for, and the rest is dropped. `tick`
  // is called a few times a second. False if something was dropped.
  bool run(const std::function<bool()>& stops, const std::function<void()>& tick);
  int count() const { return count_; }

 private:
  struct Item {
    Json work;
    Answered answered;
  };
  struct Worker;
  bool start(Worker& worker);
  void give(Worker& worker);
  void exchange(Worker& worker);
  void end(Worker& worker, const std::string& why);
  std::string farewell(Worker& worker);

  const std::vector<std::string> command_;
  const int count_;
  const std::chrono::duration<double> timeout_;
  std::deque<Item> items_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace fusejit::tools
