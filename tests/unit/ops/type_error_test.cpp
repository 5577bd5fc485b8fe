// What each family of rows refuses, and the sentence it says.
#include <gtest/gtest.h>

#include "ir/graph.h"

namespace fusejit::ir {
namespace {

struct Case {
  const char* parameters;
  const char* node;
  const char* sentence;
};

const Case kCases[] = {
    {"%a: f32[2,3], %b: i32[3]", "add(%a, %b)",
     "add: operands are f32 and i32; write cast(b) {dtype=f32} to bring them to one kind (a: f32[2,3], b: i32[3])"},
    {"%a: f32[2,3], %b: f32[4]", "add(%a, %b)", "add: shapes [2,3] and [4] do not broadcast (a: f32[2,3], b: f32[4])"},
    {"%a: bool[2], %b: bool[2]", "add(%a, %b)", "add: a must be int or float, it is bool (a: bool[2], b: bool[2])"},
    {"%a: i32[2]", "div(%a, 2)", "div: a must be float, it is i32 (a: i32[2], b: 2)"},
    {"%a: i32[2]", "add(%a, 0.5)", "add: 0.5 is no integer literal, and the other operand is i32 (a: i32[2], b: 0.5)"},
    {"%a: i32[2]", "add(%a, 2147483648)", "add: 2147483648 is out of range for i32 (a: i32[2], b: 2147483648)"},
    {"%a: bool[2]", "eq(%a, 2)", "eq: 2 is out of range for bool (a: bool[2], b: 2)"},
    {"", "add(1, 2)", "add: at least one operand must be a value that a number can take its dtype from (a: 1, b: 2)"},
    {"%a: f32[2]", "add(%a)", "add: takes 2 operands, 1 was given"},
    {"%a: f32[2]", "relu(%a, %a)", "relu: takes 1 operand, 2 were given"},
    {"%a: f32[2]", "bitwise_not(%a)", "bitwise_not: x must be int or bool, it is f32 (x: f32[2])"},
    {"%c: f32[2]", "where(%c, %c, 0)", "where: the condition must be bool, it is f32 (c: f32[2], a: f32[2], b: 0)"},
    {"%c: bool[2]", "where(%c, 1, 0)",
     "where: at least one operand must be a value that a number can take its dtype from (c: bool[2], a: 1, b: 0)"},
    {"%a: f32[2]", "cast(%a)", "cast: attribute 'dtype' must be given (x: f32[2])"},
    {"%a: f32[2]", "cast(%a) {dtype=u32}", "cast: attribute 'dtype' must be a dtype (x: f32[2])"},
    {"%a: f32[2]", "cast(%a) {dtype=f16, dtype=f32}", "cast: attribute 'dtype' is given twice (x: f32[2])"},
    {"%a: f32[2]", "cast(%a) {type=f16}", "cast: there is no attribute 'type' (x: f32[2])"},
    {"%a: i32[2]", "clamp(%a) {min=0.5}",
     "clamp: min and max of an int must be integers within its range, or infinite (x: i32[2])"},
    {"%x: f32[8,64,56,56], %w: f32[64,32,3,3]", "conv2d(%x, %w)",
     "conv2d: weight has 32 input channels, x has 64 (x: f32[8,64,56,56], w: f32[64,32,3,3])"},
    {"%x: f32[2,3]", "sum(%x) {dim=[2]}", "sum: dim 2 is out of range for rank 2 (x: f32[2,3])"},
    {"%x: f32[2,3]", "sum(%x) {dim=[-1,1]}", "sum: dim 1 is given twice (x: f32[2,3])"},
    {"%x: f32[2,3]", "sum(%x) {dim=[]}", "sum: dim=[] is legal only for a 0-d x (x: f32[2,3])"},
    {"%x: i32[2,3]", "mean(%x)", "mean: x must be float, it is i32 (x: i32[2,3])"},
    {"%x: f32[2,0]", "amax(%x) {dim=[1]}", "amax: dim 1 is empty and has no extreme (x: f32[2,0])"},
    {"%x: f32[2,3]", "reshape(%x) {shape=[4]}", "reshape: shape [4] has 4 elements, x has 6 (x: f32[2,3])"},
    {"%x: f32[2,3]", "reshape(%x) {shape=[4,-1]}", "reshape: the -1 in shape cannot be resolved (x: f32[2,3])"},
    {"%x: f32[2,3]", "permute(%x) {dims=[0]}", "permute: dims has 1 numbers, the rank is 2 (x: f32[2,3])"},
    {"%x: f32[2,3]", "squeeze(%x) {dim=[1]}", "squeeze: dim 1 has size 3, not 1 (x: f32[2,3])"},
    {"%x: f32[2,3]", "expand(%x) {shape=[3]}", "expand: x does not expand to [3] (x: f32[2,3])"},
    {"%x: f32[5]", "slice(%x) {starts=[3], stops=[2], steps=[1]}",
     "slice: 3:2 is no range of dim 0, which has size 5 (x: f32[5])"},
    {"%x: f32[5]", "slice(%x) {starts=[0], stops=[2], steps=[0]}", "slice: step 0 of dim 0 is below 1 (x: f32[5])"},
    {"%x: f32[3]", "unslice(%x) {shape=[5], starts=[1], steps=[2]}",
     "unslice: dim 0 of g does not fit into 5 from 1 in steps of 2 (g: f32[3])"},
    {"%x: f32[3]", "pad(%x) {low=[-1], high=[0]}", "pad: dim 0 is padded by a negative number (x: f32[3])"},
    {"%x: f32[3], %y: f32[3,1]", "concat(%x, %y) {dim=0}",
     "concat: operands 0 and 1 differ in another dim than 0 (a: f32[3], b: f32[3,1])"},
    {"%x: f32[3], %i: f32[3]", "gather(%x, %i) {dim=0}",
     "gather: index must be int, it is f32 (x: f32[3], index: f32[3])"},
    {"", "full() {shape=[2], value=0.5, dtype=i32}", "full: i32 cannot hold the value"},
    {"", "constant() {shape=[2], data=[1]}", "constant: data has 1 numbers, the shape [2] has 2"},
    {"", "full() {shape=[1099511627776,2], value=0}", "full: the shape [1099511627776,2] has more than 2^40 elements"},
    {"%s: i32[]", "rand(%s) {shape=[2]}", "rand: seed must be i64[] (seed: i32[])"},
    {"%x: f32[2]", "fma(%x, %x, %x)", "there is no op 'fma'"},
    {"%x: f32[2]", "parameter()", "there is no op 'parameter'"},
};

class TypeErrors : public ::testing::TestWithParam<Case> {};

TEST_P(TypeErrors, SayWhatIsWrong) {
  const Case& c = GetParam();
  const std::string text =
      "graph @t(" + std::string(c.parameters) + ") {\n  %0 = " + c.node + " : f32[]\n  return %0\n}\n";
  try {
    parse_graph(text);
    FAIL() << text;
  } catch (const ParseError& error) {
    EXPECT_EQ(error.sentence, c.sentence);
    EXPECT_EQ(error.line, 2);
    EXPECT_EQ(error.column, 8) << "errors of ops stand at the op's name";
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, TypeErrors, ::testing::ValuesIn(kCases));

}  // namespace
}  // namespace fusejit::ir
