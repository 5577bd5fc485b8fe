// The parts of the page that `html` writes, each a piece of HTML that is well-formed XML. Everything that is anyone's
// text goes through escaped(). The ids that links lead to: s4, the row of step 4; b4, its box in the picture; k4, the
// code of the kernel that step 4 was the first to run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/cpu/roofline.h"
#include "tools/fusejit-dump/kinds.h"
#include "tools/fusejit-dump/measure/measured.h"
#include "tools/fusejit-dump/planned.h"
#include "tools/fusejit-dump/rows.h"

namespace fusejit::tools {

struct Report {
  std::string source;  // as it was given
  const Planned* planned = nullptr;
  std::vector<Row> rows;
  bool compiled = false;                     // rows have figures of code, and code is shown
  std::optional<runtime::Roofline> machine;  // if it was measured
  std::optional<Measured> times;             // and the plan run on it

  const scheduler::Plan& plan() const { return planned->plan; }
  std::int64_t bytes(std::size_t step) const { return rows[step].step->read_bytes + rows[step].step->written_bytes; }
  double flop() const;
  // The least time of a step, from its bytes and arithmetic: what the measured machine allows.
  double least_milliseconds(std::size_t step) const;
  // Of a step that was measured: that time by what it took. Of all, the longest median.
  double of_roof(std::size_t step) const;
  double longest_milliseconds() const;
};

std::string head_part(const Report& report);      // title and totals
std::string bytes_part(const Report& report);     // the ledger by kind, the bound, the arena over the steps
std::string picture_part(const Report& report);   // the plan
std::string times_part(const Report& report);     // where the time goes, if it was measured
std::string kernels_part(const Report& report);   // a table
std::string roofline_part(const Report& report);  // arithmetic against intensity
std::string refused_part(const Report& report);   // what was not fused
std::string code_part(const Report& report);      // every different kernel: its loops and code

// Of report.css and report.js.
std::string_view page_style();
std::string_view page_script();

}  // namespace fusejit::tools
