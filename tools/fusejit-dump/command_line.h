// The command line of fusejit-dump. CLI11 is met in its .cpp and nowhere else: it takes long to compile.
#pragma once

#include "tools/fusejit-dump/command.h"

namespace fusejit::tools {

// Leaves what to do, or to print the help that was asked for, in the invocation. Throws UsageError.
void parse_command_line(int argc, char** argv, Invocation& invocation);

}  // namespace fusejit::tools
