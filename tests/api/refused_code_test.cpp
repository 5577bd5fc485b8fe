// Code that a user's compiler refuses, and what it says: tensors are no conditions, places of one are not assigned
// to, temporaries show no memory, modules
// have a forward.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fusejit {
namespace {

class RefusedCode : public ::testing::Test {
 protected:
  // The header is compiled once for all: g++ takes its .gch where it looks for it first.
  static void SetUpTestSuite() {
    folder_ = std::filesystem::temp_directory_path() / ("refused_code_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "fusejit");
    const std::string header = std::string(FUSEJIT_SOURCE_DIR) + "/frontend/include/fusejit/module.h";
    ASSERT_EQ(
        std::system((compiler() + " -x c++-header " + header + " -o " + (folder_ / "fusejit" / "module.h.gch").string())
                        .c_str()),
        0);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  static std::string compiler() {
    const std::string root = FUSEJIT_SOURCE_DIR;
    return std::string(FUSEJIT_CXX_COMPILER) + " -std=c++20 -w -I " + folder_.string() + " -I " + root +
           "/ir/include -I " + root + "/frontend/include";
  }

  // What the compiler says of a function of x and y; "" if it accepts it.
  std::string said_of(const std::string& statements) const {
    const std::string source = folder_ / "code.cpp", said = folder_ / "said.txt";
    std::ofstream(source) << "#include \"fusejit/module.h\"\nnamespace fj = fusejit;\n"
                          << "fj::Tensor f(fj::Tensor x, fj::Tensor y, const fj::nn::Parameter& p) {\n  " << statements
                          << "\n  return x;\n}\n";
    const std::string command = compiler() + " -fsyntax-only " + source + " > " + said + " 2>&1";
    if (std::system(command.c_str()) == 0) return "";
    std::stringstream text;
    text << std::ifstream(said).rdbuf();
    return text.str();
  }

 private:
  static inline std::filesystem::path folder_;
};

TEST_F(RefusedCode, TensorsAreNoConditions) {
  const struct {
    const char* code;
    std::vector<const char*> words;
  } cases[] = {
      {"if (x > 0) return y;", {"a Tensor is no condition", "where(", "item<bool>()", "defined()"}},
      {"while (x) x = y;", {"a Tensor is no condition"}},
      {"bool b(x);", {"a Tensor is no condition"}},
      {"return x > 0 ? x : y;", {"a Tensor is no condition", "where("}},
      {"return (x > 0) && (x < 1);", {"logical_and", "defined()"}},
      {"if (x.defined() && y) return y;", {"logical_and"}},
      {"return x || y;", {"logical_or", "defined()"}},
      {"return !x;", {"logical_not", "defined()"}},
      {"return !(x > p);", {"logical_not"}},
  };
  for (const auto& c : cases) {
    const std::string said = said_of(c.code);
    for (const char* word : c.words) EXPECT_NE(said.find(word), std::string::npos) << c.code << "\n" << said;
  }
  EXPECT_EQ(said_of("if (x.defined() && !y.defined()) return fj::where(x > 0, fj::logical_and(x, x < p), x);"), "");
}

// It would change a tensor that nobody has.
TEST_F(RefusedCode, NothingIsAssignedToAPlace) {
  for (const char* code : {"x[0] = y;", "x[0][1] = y;", "x[0] += y;"}) EXPECT_NE(said_of(code), "") << code;
  EXPECT_EQ(said_of("fj::Tensor z = x[0]; z += y[-1]; x = z; return x[1][2];"), "");
}

TEST_F(RefusedCode, TemporariesHaveNoSpan) {
  for (const char* code : {"for (float v : (x + y).span<float>()) return v * x;", "(void)p.value().span<float>();"}) {
    const std::string said = said_of(code);
    for (const char* word : {"temporary tensor", "in a variable", "host_view()"})
      EXPECT_NE(said.find(word), std::string::npos) << code << "\n" << said;
  }
  EXPECT_EQ(said_of("fj::Tensor z = x + y; for (float v : z.span<float>()) return v * x;"), "");
}

TEST_F(RefusedCode, ModulesHaveAForward) {
  const std::string module = "struct Net : fj::nn::ModuleOf<Net> { ";
  const std::string said = said_of(module + "}; Net net;");
  EXPECT_NE(said.find("a module says what it computes"), std::string::npos) << said;
  for (const char* form : {"fj::Tensor forward(const fj::Tensor& x) override { return x; }",
                           "fj::Tensor forward(const fj::Tensor& x) const override { return x; }"})
    EXPECT_EQ(said_of(module + form + "}; Net net; net(net.forward(x)); const Net same; same(x);"), "");
}

}  // namespace
}  // namespace fusejit
