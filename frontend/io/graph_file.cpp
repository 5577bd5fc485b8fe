#include "frontend/io/graph_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "frontend/io/array_file.h"
#include "frontend/io/files.h"
#include "ir/base/check.h"
#include "ir/base/number.h"
#include "ir/passes/grad.h"

namespace fusejit::io {
namespace {

using ir::Array;

const NamedArray* find(std::span<const NamedArray> arrays, std::string_view name) {
  const auto at = std::find_if(arrays.begin(), arrays.end(), [&](const NamedArray& a) { return a.name == name; });
  return at == arrays.end() ? nullptr : &*at;
}

std::string type_text(const NamedArray& array) { return Type{array.dtype, array.shape}.str(); }

Array to_array(const NamedArray& array, const Type& type) {
  Array out(type);
  std::copy(array.bytes.begin(), array.bytes.end(), out.bytes.begin());
  return out;
}

// NaN and inf in the same places, everything else within the tolerance; equal integers always agree.
bool agrees(ir::Scalar got, ir::Scalar want, Tolerance tolerance) {
  if (got.dtype == want.dtype && got.bits == want.bits) return true;
  const double g = got.as_double(), w = want.as_double();
  if (std::isnan(g) || std::isnan(w)) return std::isnan(g) && std::isnan(w);
  if (std::isinf(g) || std::isinf(w)) return g == w;
  return std::fabs(g - w) <= tolerance.absolute + tolerance.relative * std::fabs(w);
}

// Expected arrays may be f64 for any float result, then under the plain name as well.
void check_expected(const NamedArray& array, const Type& type, const std::string& source) {
  const bool fits =
      array.shape == type.shape && (array.dtype == type.dtype || (is_float(type.dtype) && array.dtype == DType::f64));
  FJ_CHECK(fits, "{}: array '{}' is {}, the result is {}", source, array.name, type_text(array),
           Type{type.dtype, type.shape}.str());
}

const NamedArray& expected_array(const std::string& name, const Type& type, std::span<const NamedArray> want,
                                 const std::string& source) {
  const NamedArray* array = find(want, stored_name(name, type.dtype));
  if (!array) array = find(want, name);
  FJ_CHECK(array, "{}: there is no array '{}'", source, stored_name(name, type.dtype));
  check_expected(*array, type, source);
  return *array;
}

std::string difference(const std::string& name, const Array& got, const NamedArray& want, Tolerance tolerance) {
  std::int64_t count = 0, worst = -1;
  double largest = -1;
  for (std::int64_t i = 0; i < got.type.elements(); ++i) {
    const ir::Scalar expected = ir::load_element(want.bytes.data(), want.dtype, i);
    if (agrees(got.at(i), expected, tolerance)) continue;
    const double error = std::fabs(got.at(i).as_double() - expected.as_double());
    if (worst < 0 || error > largest) worst = i, largest = error;
    ++count;
  }
  if (count == 0) return "";
  const double g = got.at(worst).as_double(), w = ir::load_element(want.bytes.data(), want.dtype, worst).as_double();
  return fmt::format("{}: {} of {} elements differ, most at element {}: {} instead of {}", name, count,
                     got.type.elements(), worst, ir::shortest_text(g), ir::shortest_text(w));
}

}  // namespace

ir::Graph read_graph(const std::string& path) {
  constexpr std::size_t kMost = std::size_t{256} << 20;  // parse_graph refuses what is longer
  const std::vector<std::byte> bytes = read_beginning(path, kMost + 1);
  return ir::parse_graph({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

GraphFile open_graph(ir::Graph graph, const std::vector<std::string>& wrt) {
  GraphFile file;
  const std::size_t forward = graph.results().size();
  for (std::size_t i = 0; i < forward; ++i) file.results.push_back(fmt::format("out{}", i));
  if (!wrt.empty()) {
    for (const std::string& name : wrt) file.results.push_back("d_" + name);
    std::vector<std::string> floats;
    for (std::size_t i = 0; i < forward; ++i)
      if (is_float(graph.results()[i].type().dtype))
        floats.push_back(graph.results()[i].type().shape.rank() == 0 ? fmt::format("d_out{}", i) : "");
    if (floats.size() == 1) file.optional_cotangent = floats[0];
    graph = ir::differentiate(graph, wrt);
  }
  file.graph = std::move(graph);
  return file;
}

namespace {

void check_argument(const NamedArray& array, const Type& type, const std::string& source) {
  FJ_CHECK(array.dtype == type.dtype && array.shape == type.shape, "{}: array '{}' is {}, the parameter is {}", source,
           array.name, type_text(array), type.str());
}

// What is said of an array that is no parameter's.
std::string no_parameters(const ir::Graph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.parameters().size(); ++i) {
    const Type& type = graph.parameters()[i].type();
    const std::string stored = stored_name(name, type.dtype);
    if (graph.parameter_name(i) == name && stored != name)
      return fmt::format("array '{}': parameter %{} is {}, its bits are expected in a u2 array '{}'", name, name,
                         type.str(), stored);
  }
  return fmt::format("array '{}' belongs to no parameter of graph @{}", name, graph.name());
}

}  // namespace

std::vector<NamedArray> read_arguments(const GraphFile& file, const std::string& path) {
  std::unordered_map<std::string, const Type*> types;
  for (std::size_t i = 0; i < file.graph.parameters().size(); ++i) {
    const Type& type = file.graph.parameters()[i].type();
    types.emplace(stored_name(file.graph.parameter_name(i), type.dtype), &type);
  }
  return read_stored_arrays(path, {}, [&](const NamedArray& described) {
    const auto found = types.find(described.name);
    FJ_CHECK(found != types.end(), "{}: {}", path, no_parameters(file.graph, described.name));
    check_argument(described, *found->second, path);
    return true;
  });
}

std::vector<Array> bind_arguments(const GraphFile& file, std::span<const NamedArray> arrays,
                                  const std::string& source) {
  std::unordered_set<std::string_view> used;
  std::unordered_map<std::string_view, const NamedArray*> named;
  for (const NamedArray& array : arrays)
    FJ_CHECK(named.emplace(array.name, &array).second, "{}: two arrays are called '{}'", source, array.name);
  std::vector<Array> arguments;
  for (std::size_t i = 0; i < file.graph.parameters().size(); ++i) {
    const Type& type = file.graph.parameters()[i].type();
    const std::string& name = file.graph.parameter_name(i);
    const std::string stored = stored_name(name, type.dtype);
    const auto found = named.find(stored);
    if (found == named.end()) {
      FJ_CHECK(name == file.optional_cotangent, "{}: there is no array '{}' for parameter %{}: {}", source, stored,
               name, type.str());
      arguments.emplace_back(type);
      arguments.back().set(0, ir::cast(ir::Scalar::of(1.0), type.dtype));
      continue;
    }
    const NamedArray& array = *found->second;
    check_argument(array, type, source);
    used.insert(found->first);
    arguments.push_back(to_array(array, type));
  }
  for (const NamedArray& array : arrays)
    FJ_CHECK(used.contains(array.name), "{}: {}", source, no_parameters(file.graph, array.name));
  return arguments;
}

std::vector<NamedArray> read_expected(const GraphFile& file, const std::string& path) {
  std::unordered_map<std::string, Type> types;
  for (std::size_t i = 0; i < file.results.size(); ++i) {
    const Type& type = file.graph.results()[i].type();
    types.emplace(file.results[i], type), types.emplace(stored_name(file.results[i], DType::bf16), type);
  }
  return read_stored_arrays(
      path, [&](std::string_view name) { return types.contains(std::string(name)); },
      [&](const NamedArray& described) {
        check_expected(described, types.at(described.name), path);
        return true;
      });
}

std::vector<NamedArray> name_results(const GraphFile& file, std::span<const Array> values) {
  std::vector<NamedArray> named;
  for (std::size_t i = 0; i < values.size(); ++i)
    named.push_back({stored_name(file.results[i], values[i].type.dtype), values[i].type.dtype, values[i].type.shape,
                     values[i].bytes});
  return named;
}

std::vector<std::string> differences(const GraphFile& file, std::span<const Array> got,
                                     std::span<const NamedArray> want, Tolerance tolerance, const std::string& source) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::string sentence =
        difference(file.results[i], got[i], expected_array(file.results[i], got[i].type, want, source), tolerance);
    if (!sentence.empty()) found.push_back(sentence);
  }
  return found;
}

}  // namespace fusejit::io
