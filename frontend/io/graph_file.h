// Graphs and their arguments in files (ops.md §13): a .fj text, one array per parameter, results out0, out1, ... and,
// after differentiation, d_<parameter>.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "frontend/io/npz.h"
#include "ir/graph.h"
#include "ir/interp.h"

namespace fusejit::io {

// Throws FileError, ParseError (positions in the file) and UserError.
ir::Graph read_graph(const std::string& path);

// A graph of a file with the names of its results in order.
struct GraphFile {
  ir::Graph graph;
  std::vector<std::string> results;
  // The one cotangent that may be left out, because it belongs to the only float result and that is 0-d; else empty.
  std::string optional_cotangent;
};
// With gradients by `wrt`, if any are named: UserError for a name that is no float parameter or is named twice.
GraphFile open_graph(ir::Graph graph, const std::vector<std::string>& wrt);

// The arrays of a file that is meant for the graph's parameters. UserError for an unknown or ill-typed one, before its
// elements are read.
std::vector<NamedArray> read_arguments(const GraphFile& file, const std::string& path);
// One array per parameter, in the order of the graph. UserError for a missing, unknown or ill-typed array; `source`
// names the file in messages.
std::vector<ir::Array> bind_arguments(const GraphFile& file, std::span<const NamedArray> arrays,
                                      const std::string& source);

// The arrays of a file that hold the graph's results; others are passed over.
std::vector<NamedArray> read_expected(const GraphFile& file, const std::string& path);

std::vector<NamedArray> name_results(const GraphFile& file, std::span<const ir::Array> values);

struct Tolerance {
  double relative = 1e-5;
  double absolute = 1e-6;
};
// One sentence for each result that differs, empty if all agree: NaN and inf stand in the same places and
// |got - want| <= absolute + relative * |want|. UserError where `want` lacks a result or has it in another shape or
// dtype.
std::vector<std::string> differences(const GraphFile& file, std::span<const ir::Array> got,
                                     std::span<const NamedArray> want, Tolerance tolerance, const std::string& source);

}  // namespace fusejit::io
