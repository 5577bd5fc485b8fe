// A section in a process of its own.
#pragma once

#include <string>
#include <vector>

#include "tests/gpu_check/report.h"
#include "tests/gpu_check/sections.h"

namespace fusejit::gpu_check {

// Runs this program again with --child and these arguments, and reads what it wrote. A child that dies, or is stopped
// after so many seconds, is a failed section that keeps what it had found by then.
Json run_section_in_child(const Section& section, const std::vector<std::string>& arguments, double seconds);
// The same for another program, which gets `--child NAME --child-file FILE` and the arguments.
Json run_section_in_child(const std::string& program, const Section& section, const std::vector<std::string>& arguments,
                          double seconds);

}  // namespace fusejit::gpu_check
