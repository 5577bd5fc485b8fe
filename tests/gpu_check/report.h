// What one section found out: checks that passed or not, rows of a table, sentences. It can be written to a file after
// every line, so that of a section which crashes everything up to there is kept.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace fusejit::gpu_check {

using Json = nlohmann::ordered_json;

// Thrown by a section that cannot run here; the sentence says why.
struct Skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Report {
 public:
  // Written to `file`, if it is not empty, whenever something is added.
  explicit Report(std::string name, std::filesystem::path file = {});

  // `problem` is what is wrong, in a sentence; empty: nothing is.
  void check(const std::string& what, const std::string& problem);
  // Flat: names of columns and numbers or texts. Rows of one section may differ in columns.
  void row(Json columns);
  void say(const std::string& sentence);

  // state: "running", "passed", "failed" or "skipped"; `sentence` says why.
  void finish(const std::string& state, const std::string& sentence, double seconds);
  int failures() const { return failures_; }
  const Json& json() const { return json_; }

 private:
  void write() const;
  Json json_;
  std::filesystem::path file_;
  int failures_ = 0;
};

// One section as people read it: a line with its state, failed checks, its rows as a table, its sentences.
std::string text(const Json& section);

}  // namespace fusejit::gpu_check
