// Signatures as text: what they say comes back, and what is damaged is left out with a note.
#include "runtime/warmup/signature.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/cache_folder.h"

namespace fusejit::runtime {
namespace {

Signature example(const std::string& shape = "f32[2,3]") {
  Signature signature;
  signature.graph = ir::parse_graph("graph @g(%x: " + shape + ", %y: " + shape + ") {\n  %0 = add(%x, %y) : " + shape +
                                    "\n  %1 = relu(%0) : " + shape + "\n  return %1\n}\n");
  signature.donated = {false, true};
  signature.rules = scheduler::Rules::none;
  signature.target = Target::parse("x86:avx2,l2=2m");
  signature.milliseconds = 12.5;
  return signature;
}

std::string refusal(const std::string& line) {
  try {
    parse_signature(line);
  } catch (const UserError& error) {
    return error.what();
  }
  return "taken";
}

TEST(Signature, ComesBackAsItWas) {
  const Signature one = example();
  const std::string line = print(one);
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
  const Signature again = parse_signature(line);
  EXPECT_TRUE(again.graph == one.graph);
  EXPECT_EQ(again.donated, one.donated);
  EXPECT_EQ(again.fixed, one.fixed);
  EXPECT_EQ(again.rules, scheduler::Rules::none);
  EXPECT_EQ(again.target, one.target);
  EXPECT_EQ(again.milliseconds, 12.5);
  EXPECT_EQ(print(again), line);
}

TEST(Signature, NoChangedByteIsTaken) {
  const std::string line = print(example());
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    std::string changed = line;
    changed[i] ^= 1;
    EXPECT_NE(refusal(changed), "taken") << i;
    EXPECT_NE(refusal(line.substr(0, i)), "taken") << i;
  }
}

TEST(Signature, OtherSchemasAndOtherJsonAreNamed) {
  EXPECT_EQ(refusal("{}"), "this is no signature");
  EXPECT_EQ(refusal("[1]"), "this is no signature");
  std::string later = print(example());
  later.replace(later.find("\"schema\":1"), 10, "\"schema\":2");
  EXPECT_EQ(refusal(later), "a signature of schema 2, this version reads 1");
}

TEST(Signature, FilesMayBeConcatenated) {
  const test::CacheFolder folder;
  const std::string path = folder.path("all.fjs");
  const std::string one = print(example()), other = print(example("f32[5]"));
  std::ofstream(path) << one << other << "\n" << one << one.substr(0, one.size() / 2);
  const SignatureFile file = read_signatures(path);
  EXPECT_EQ(file.signatures.size(), 2u) << "each once";
  ASSERT_EQ(file.notes.size(), 1u);
  EXPECT_EQ(file.notes[0], path + ":5: this is no signature");
  std::ofstream(path) << "no line of this\nis one\n";
  EXPECT_THROW(read_signatures(path), UserError);
  std::ofstream(path) << "";
  EXPECT_THROW(read_signatures(path), UserError);
}

}  // namespace
}  // namespace fusejit::runtime
