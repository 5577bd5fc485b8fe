// ReasonLog: why cuDNN left an engine out of its list. It says so nowhere but in its log, a trace of every check that
// failed; this reads what was added to the log since the last call and picks the sentence that was said most often.
#pragma once

#include <string>

namespace fusejit::cudnn_probe {

class ReasonLog {
 public:
  // Turns cuDNN's log on, into a temporary file. To be made before cuDNN is loaded.
  ReasonLog();
  ~ReasonLog();
  ReasonLog(const ReasonLog&) = delete;
  ReasonLog& operator=(const ReasonLog&) = delete;
  // The most frequent reason since the last call, or "".
  std::string take();

 private:
  std::string path_;
};

}  // namespace fusejit::cudnn_probe
