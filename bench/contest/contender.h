// How a contender written in C++ speaks with bench/cpu.py (the lines are described in bench/peers/README.md), and how
// it is told its workload. Standard headers only: contenders that know nothing of fusejit include it too.
#pragma once

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

namespace contest {

// "--net resnet50 --batch 16 …": names without dashes.
class Flags {
 public:
  Flags(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string name = argv[i];
      if (name.rfind("--", 0) != 0 || i + 1 == argc) throw std::invalid_argument("not --name value: '" + name + "'");
      values_[name.substr(2)] = argv[++i];
    }
  }
  std::string text(const std::string& name, const std::string& otherwise) const {
    const auto at = values_.find(name);
    return at == values_.end() ? otherwise : at->second;
  }
  int number(const std::string& name, int otherwise) const { return std::stoi(text(name, std::to_string(otherwise))); }

 private:
  std::map<std::string, std::string> values_;
};

// One pass of one convolution, as a part says it: "forward 16 64 56 64 3 1 1" (or dx, dw): batch, channels, pixels a
// side, outputs, kernel, stride, padding.
struct LayerPart {
  std::string pass;
  int batch = 0, channels = 0, size = 0, outputs = 0, kernel = 0, stride = 0, padding = 0;
  explicit LayerPart(const std::string& text) {
    std::istringstream in(text);
    in >> pass >> batch >> channels >> size >> outputs >> kernel >> stride >> padding;
    if (!in || (pass != "forward" && pass != "dx" && pass != "dw")) throw std::invalid_argument("no layer: " + text);
  }
  int out() const { return (size + 2 * padding - kernel) / stride + 1; }
};

// A few layers, forward and backward: "conv_bn_relu 16 64 56": what they are, batch, channels, pixels a side.
struct PatternPart {
  std::string layers;
  int batch = 0, channels = 0, size = 0;
  explicit PatternPart(const std::string& text) {
    std::istringstream in(text);
    in >> layers >> batch >> channels >> size;
    if (!in) throw std::invalid_argument("no pattern: " + text);
  }
};

// Of this process: "VmRSS" is what it holds now, "VmHWM" the most it held.
inline double resident_mib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::stod(line.substr(field.size() + 1)) / 1024;
  }
  return 0;
}

struct StepResult {
  std::optional<double> loss = {};
  std::optional<double> milliseconds = {};  // where not all that was done belongs to the step
};

// Answers each line "run N PART" until there are no more. `step(part)` does one whole step; whatever it prepares in its
// first call counts as the first step's.
template <class Step>
int serve(const std::string& name, double held_before_mib, const Step& step) {
  std::cout << "{\"ready\": \"" << name << "\"}" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string run, part;
    int count = 0;
    in >> run >> count >> std::ws;
    std::getline(in, part);
    std::ostringstream answer;
    try {
      StepResult last;
      answer << "{\"ms\": [";
      for (int i = 0; i < count; ++i) {
        const auto start = std::chrono::steady_clock::now();
        last = step(part);
        const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
        answer << (i ? ", " : "") << last.milliseconds.value_or(wall.count());
      }
      answer << "], \"peak_mib\": " << resident_mib("VmHWM") - held_before_mib << ", \"loss\": ";
      last.loss ? answer << *last.loss : answer << "null";
      answer << "}";
    } catch (const std::exception& error) {
      std::string said = error.what();
      for (char& c : said) c = c == '"' || c == '\\' || static_cast<unsigned char>(c) < 32 ? '\'' : c;
      answer.str("");
      answer << "{\"error\": \"" << said << "\"}";
    }
    std::cout << answer.str() << std::endl;
  }
  return 0;
}

// A program's `main`: its exit status, with what was wrong on stderr.
inline int run(const char* program, int argc, char** argv, int (*contend)(const Flags&)) {
  try {
    return contend(Flags(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << program << ": " << error.what() << '\n';
    return 2;
  }
}

}  // namespace contest
