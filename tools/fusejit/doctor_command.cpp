#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/fusejit/command.h"
#include "tools/fusejit/doctor.h"
#include "tools/output.h"

namespace fusejit::tools {

int doctor(const DoctorOptions& options) {
  const Diagnosis diagnosis = diagnose();
  const std::string report = options.json ? json(diagnosis).dump(2) + "\n" : text(diagnosis);
  std::fputs(report.c_str(), stdout);
  finish_output();
  const auto lacks = [&](const char* name, bool there) {
    const bool wanted = std::find(options.required.begin(), options.required.end(), name) != options.required.end();
    if (wanted && !there) std::fprintf(stderr, "fusejit: error: %s was required and does not work here\n", name);
    return wanted && !there;
  };
  const bool x86 = lacks("x86", diagnosis.x86), code = lacks("cuda-code", diagnosis.cuda_code);
  return lacks("cuda", diagnosis.cuda) || x86 || code ? kDevice : kDone;
}

}  // namespace fusejit::tools
