// The probe's table, and its two written forms.
#pragma once

#include <string>
#include <vector>

#include "runtime/cudnn/support/support.h"

namespace fusejit::cudnn_probe {

struct Cell {
  char state = '?';    // 'P', 'R', 'S', '-' or '?' (see runtime::cudnn::cells)
  std::string reason;  // of '-'
};

struct Table {
  int version = 0;
  std::vector<Cell> all;
  Cell& cell(int pattern, int shape_class, int column);
  const Cell& cell(int pattern, int shape_class, int column) const;
};

// What the run time was built with.
Table compiled_in_table();
// As C++, for runtime/cudnn/support/support.cpp. Throws FileError.
void write_table(const Table& table, const std::string& path);
// Into a page that is there (docs/cudnn.md), below its marker: one table a class of shapes. Throws FileError.
void write_markdown(const Table& table, const std::string& path);

}  // namespace fusejit::cudnn_probe
