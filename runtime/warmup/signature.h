// Signatures: what a run planned, as text, so that it can be planned and compiled elsewhere, before it is needed. Not
// binaries: a signature means the same to every version, target and machine. One line of JSON each, with a check sum:
//
//   {"donated":[1],"fixed":[],"graph":"graph @main(…) {…}\n","milliseconds":412.5,"rules":"all","schema":1,
//    "sum":"9f2c…","target":"x86:avx512,…"}
//
// Files of them may be concatenated, filtered and compared with ordinary tools; a line that is damaged, or of a later
// version, is left out with a note.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fusejit/target.h"
#include "ir/graph.h"
#include "scheduler/fuse/rules.h"
#include "scheduler/recompute/memory_limit.h"

namespace fusejit::runtime {

struct Signature {
  ir::Graph graph;
  std::vector<bool> donated, fixed;  // per parameter; empty: none
  scheduler::Rules rules = scheduler::Rules::all;
  scheduler::MemoryLimit memory_limit = {};
  Target target;
  double milliseconds = 0;  // that making it took
};

// With the line's end.
std::string print(const Signature& signature);
// Throws UserError: no JSON, another schema, a wrong sum, a graph that cannot be read.
Signature parse_signature(std::string_view line);

struct SignatureFile {
  std::vector<Signature> signatures;  // each once
  std::vector<std::string> notes;     // "run.fjs:12: …", of lines left out
};
// Throws FileError, and UserError if no line can be read.
SignatureFile read_signatures(const std::string& path);

// From now on every new plan of the process is appended to the file, in one write each, so that several processes may
// share it; "" ends it. Throws FileError if it cannot be written.
void record_signatures(const std::string& path);
// FUSEJIT_RECORD=FILE does so from the first plan on.
bool is_recording();
// Does nothing unless recording, or if it was recorded before.
void record(const Signature& signature);

}  // namespace fusejit::runtime
