#include "tools/cudnn_probe/reason_log.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace fusejit::cudnn_probe {
namespace {

// Said of configurations for clusters of a described device, and of engines of other architectures; never the reason.
constexpr std::string_view kNoise[] = {"No GPC available", "cuDNN Library configuration", "FORT_NATIVE_"};

// The sentence in "... Reason: SENTENCE at: CONDITION"; without " at: " it is only a frame of the trace.
std::string sentence_of(const std::string& line) {
  const std::size_t begin = line.find("Reason: "), end = line.find(" at: ");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
  std::string sentence = line.substr(begin + 8, end - begin - 8);
  while (!sentence.empty() && (sentence.back() == ' ' || sentence.back() == '.')) sentence.pop_back();
  for (const std::string_view noise : kNoise) {
    if (sentence.starts_with(noise)) return "";
  }
  return sentence;
}

}  // namespace

ReasonLog::ReasonLog() {
  path_ = (std::filesystem::temp_directory_path() / ("cudnn_probe_" + std::to_string(getpid()) + ".log")).string();
  setenv("CUDNN_LOGLEVEL_DBG", "2", 1);
  setenv("CUDNN_LOGDEST_DBG", path_.c_str(), 1);
}

ReasonLog::~ReasonLog() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

std::string ReasonLog::take() {
  std::map<std::string, int> said;
  {
    std::ifstream log(path_);
    for (std::string line; std::getline(log, line);) {
      const std::string sentence = sentence_of(line);
      if (!sentence.empty()) ++said[sentence];
    }
  }
  std::error_code ignored;
  if (std::filesystem::exists(path_, ignored)) std::filesystem::resize_file(path_, 0, ignored);
  std::string most;
  for (const auto& [sentence, times] : said) {
    if (most.empty() || times > said[most]) most = sentence;
  }
  return most;
}

}  // namespace fusejit::cudnn_probe
