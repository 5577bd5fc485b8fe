#include "runtime/warmup/signature.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "ir/base/check.h"
#include "runtime/disk/files.h"

namespace fusejit::runtime {
namespace {

using Json = nlohmann::json;

constexpr int kSchema = 1;
constexpr std::size_t kMostLine = std::size_t{256} << 20;

Json numbers_of(const std::vector<bool>& per_parameter) {
  Json numbers = Json::array();
  for (std::size_t i = 0; i < per_parameter.size(); ++i) {
    if (per_parameter[i]) numbers.push_back(i);
  }
  return numbers;
}

std::vector<bool> flags_of(const Json& numbers, std::size_t parameters) {
  if (numbers.empty()) return {};
  std::vector<bool> flags(parameters);
  for (const Json& number : numbers) {
    const auto i = number.get<std::size_t>();
    FJ_CHECK(i < parameters, "signature: parameter {} is named, there are {}", i, parameters);
    flags[i] = true;
  }
  return flags;
}

Json as_json(const Signature& signature) {
  Json json = {{"schema", kSchema},
               {"graph", ir::print(signature.graph)},
               {"donated", numbers_of(signature.donated)},
               {"fixed", numbers_of(signature.fixed)},
               {"rules", name(signature.rules)},
               {"target", signature.target.str()}};
  if (!signature.memory_limit.is_none()) json["memory_limit"] = signature.memory_limit.str();
  return json;
}

std::string sum_of(const Json& json) { return ir::hash_text(json.dump()).hex(); }

// What makes two signatures one, the time they took and the names in them left out.
ir::Hash identity(const Signature& s) {
  const Json how = {numbers_of(s.donated), numbers_of(s.fixed), name(s.rules),
                    s.memory_limit.str(),  s.target.str(),      ir::hash(s.graph).hex()};
  return ir::hash_text(how.dump());
}

struct Recorder {
  std::mutex mutex;
  disk::Handle file;
  bool was_asked = false;  // the environment
  std::unordered_set<ir::Hash, ir::HashOfHash> known;
};

// Never destroyed: what is static may still evaluate at the end.
Recorder& recorder() {
  static auto& one = *new Recorder;
  return one;
}

void open_file(Recorder& to, const std::string& path) {
  disk::Handle file;
  if (!path.empty()) {
    file = disk::Handle(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!file) throw FileError(fmt::format("{}: signatures cannot be recorded there: {}", path, std::strerror(errno)));
  }
  to.file = std::move(file);
  to.known.clear();
  to.was_asked = true;
}

}  // namespace

std::string print(const Signature& signature) {
  Json json = as_json(signature);
  json["milliseconds"] = std::round(signature.milliseconds * 10) / 10;
  json["sum"] = sum_of(json);
  return json.dump() + "\n";
}

Signature parse_signature(std::string_view line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  FJ_CHECK(json.is_object() && json.contains("graph"), "this is no signature");
  try {
    const int schema = json.at("schema").get<int>();
    FJ_CHECK(schema == kSchema, "a signature of schema {}, this version reads {}", schema, kSchema);
    const std::string sum = json.at("sum").get<std::string>();
    json.erase("sum");
    FJ_CHECK(sum == sum_of(json), "the signature's check sum is wrong");
    Signature signature;
    signature.graph = ir::parse_graph(json.at("graph").get<std::string>());
    const std::size_t parameters = signature.graph.parameters().size();
    signature.donated = flags_of(json.at("donated"), parameters);
    signature.fixed = flags_of(json.at("fixed"), parameters);
    signature.rules = scheduler::parse_rules(json.at("rules").get<std::string>());
    if (json.contains("memory_limit"))
      signature.memory_limit = scheduler::parse_memory_limit(json.at("memory_limit").get<std::string>());
    signature.target = Target::parse(json.at("target").get<std::string>());
    signature.milliseconds = json.at("milliseconds").get<double>();
    return signature;
  } catch (const Json::exception& error) {
    throw UserError(fmt::format("this is no signature: {}", error.what()));
  }
}

SignatureFile read_signatures(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw FileError(fmt::format("{}: {}", path, std::strerror(errno)));
  SignatureFile result;
  std::unordered_set<ir::Hash, ir::HashOfHash> known;
  std::string line;
  int number = 0;
  while (std::getline(file, line)) {
    ++number;
    if (line.empty()) continue;
    try {
      FJ_CHECK(line.size() <= kMostLine, "a line of {} bytes is too long", line.size());
      Signature signature = parse_signature(line);
      if (known.insert(identity(signature)).second) result.signatures.push_back(std::move(signature));
    } catch (const UserError& error) {
      result.notes.push_back(fmt::format("{}:{}: {}", path, number, error.what()));
    }
  }
  if (file.bad()) throw FileError(fmt::format("{} cannot be read", path));
  FJ_CHECK(!result.signatures.empty(), "{}", result.notes.empty() ? path + " holds no signature" : result.notes[0]);
  return result;
}

void record_signatures(const std::string& path) {
  Recorder& to = recorder();
  const std::lock_guard lock(to.mutex);
  open_file(to, path);
}

bool is_recording() {
  Recorder& to = recorder();
  const std::lock_guard lock(to.mutex);
  if (!to.was_asked) {
    to.was_asked = true;
    if (const char* path = ::secure_getenv("FUSEJIT_RECORD"); path && *path != '\0') open_file(to, path);
  }
  return bool(to.file);
}

void record(const Signature& signature) {
  if (!is_recording()) return;
  const std::string line = print(signature);
  Recorder& to = recorder();
  const std::lock_guard lock(to.mutex);
  if (!to.file || !to.known.insert(identity(signature)).second) return;
  // One write: lines of other processes do not come between. What does not fit on the disk is a damaged line.
  [[maybe_unused]] const ssize_t written = ::write(to.file.get(), line.data(), line.size());
}

}  // namespace fusejit::runtime
