// What is no model, or none that has a meaning here: refused with one sentence, in little memory and stack.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "frontend/onnx/graph.h"
#include "fusejit/fusejit.h"
#include "tests/support/allocations/allocations.h"
#include "tests/support/error_of.h"
#include "tests/support/mutate.h"
#include "tests/support/nightly.h"
#include "tests/support/onnx_file.h"
#include "tests/support/temporary_folder.h"

namespace fusejit::onnx {
namespace {

using namespace testing::onnx_file;  // NOLINT: a small language
using testing::error_of;

class OnnxRefusals : public ::testing::Test {
 protected:
  void SetUp() override { set_options({.engine = "graph_interpreter"}); }
  void TearDown() override { set_options({}); }
  Model loaded(const std::string& bytes) const {
    testing::write_bytes(path_, bytes);
    return load(path_);
  }
  template <class E = UserError>
  std::string refusal(const std::string& bytes) const {
    return error_of<E>([&] { loaded(bytes); });
  }
  // A model whose nodes make y: f32[N,4] of x: f32[N,4].
  static std::string graph(const std::string& parts) {
    return all(parts, port(11, "x", {-1, 4}), port(12, "y", {-1, 4}));
  }
  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_ / "model.onnx";
};

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(OnnxRefusals, AcceptWhatIsRight) {
  Model net = loaded(model(graph(node("Relu", {"x"}, {"y"}))));
  EXPECT_EQ(net(tensor<float>({-1, 2, -3, 4}).reshape({1, 4})).to_vector<float>(), (std::vector<float>{0, 2, 0, 4}));
}

TEST_F(OnnxRefusals, ListAllNodesAtOnce) {
  const std::string text = refusal<UnsupportedError>(
      model(graph(all(node("Relu", {"x"}, {"a"}), node("Loop", {"a"}, {"b"}, "", "/outer/Loop"),
                      node("Softmax", {"b"}, {"c"}, attribute("temperature", 2), "/head/Softmax"),
                      node("Elu", {"c"}, {"d"}, attribute("alpha", 2), "/Elu"),
                      node("Pad", {"d", "p"}, {"y"}, attribute("mode", "mirror"), "/Pad"),
                      initializer("p", {4}, kInt64, std::string(32, '\0'))))));
  EXPECT_TRUE(holds(text,
                    "4 parts of the model cannot be meant: /outer/Loop (Loop): there is no such op here; "
                    "/head/Softmax (Softmax): its attribute 'temperature' is not understood; "
                    "/Elu (Elu): its attribute 'alpha' is of another kind; "
                    "/Pad (Pad): its mode is mirror, understood is constant|reflect|edge"))
      << text;
}

TEST_F(OnnxRefusals, NameOneNodeOfEachOpAndReason) {
  const std::string text = refusal<UnsupportedError>(
      model(graph(all(node("Loop", {"x"}, {"a"}, "", "/first/Loop"), node("Scan", {"a"}, {"b"}, "", "/Scan"),
                      node("Loop", {"b"}, {"c"}, "", "/second/Loop"), node("Loop", {"c"}, {"y"}, "", "/third/Loop")))));
  EXPECT_TRUE(holds(text,
                    "4 parts of the model cannot be meant: /first/Loop (Loop) and 2 more of this op: there is no such "
                    "op here; /Scan (Scan): there is no such op here"))
      << text;
}

TEST_F(OnnxRefusals, SayWhatShapesDoNotFit) {
  const std::string weight = initializer("w", {3, 2}, kFloat, std::string(24, '\0'));
  const std::string text =
      refusal(model(graph(all(weight, node("MatMul", {"x", "w"}, {"a"}, "", "/fc/MatMul"), node("Relu", {"a"}, {"b"}),
                              node("Reshape", {"x", "s"}, {"c"}, "", "/Reshape"), node("Add", {"b", "c"}, {"y"}),
                              initializer("s", {1}, kInt64, std::string("\x05\0\0\0\0\0\0\0", 8))))));
  EXPECT_TRUE(holds(text, "2 parts of the model cannot be meant: /fc/MatMul (MatMul): matmul: ")) << text;
  EXPECT_TRUE(holds(text, "; /Reshape (Reshape): reshape: ")) << text;
}

// Extents that the file leaves open are those of the call, equal where they have one name.
TEST_F(OnnxRefusals, SayAtTheCallWhatOpenExtentsDoNotFit) {
  Model net = loaded(model(all(initializer("w", {3, 2}, kFloat, std::string(24, '\0')),
                               node("MatMul", {"x", "w"}, {"a"}, "", "/fc/MatMul"), node("Relu", {"a"}, {"y"}),
                               port(11, "x", {-1, -1}), port(12, "y", {-1, 2}))));
  EXPECT_EQ(net(ones({3, 3})).shape(), (Shape{3, 2}));
  EXPECT_TRUE(holds(error_of([&] {
                      net(ones({4, 4}));
                    }),
                    "one part of the model cannot be meant: /fc/MatMul (MatMul): "));
  EXPECT_TRUE(holds(error_of([&] { net(ones({2, 3})); }), "input 'x' is f32[2,3], the model says f32[N,N]"));
  EXPECT_EQ(net(ones({3, 3})).to_vector<float>(), std::vector<float>(6)) << "after errors";
}

TEST_F(OnnxRefusals, SayThatAShapeDependsOnValues) {
  const std::string text = refusal(model(
      graph(all(node("Cast", {"x"}, {"i"}, attribute("to", 7)), node("Reshape", {"x", "i"}, {"y"}, "", "/Reshape")))));
  EXPECT_TRUE(holds(text, "/Reshape (Reshape): operand 'i' must be a constant, or follow from shapes alone")) << text;
}

TEST_F(OnnxRefusals, RefuseOtherOpSets) {
  EXPECT_TRUE(holds(refusal<UnsupportedError>(model(graph(node("Relu", {"x"}, {"y"})), 11)), "op set 11, 13 to 21"));
  EXPECT_TRUE(holds(refusal<UnsupportedError>(model(graph(node("Relu", {"x"}, {"y"})), 22)), "op set 22, 13 to 21"));
  EXPECT_TRUE(holds(refusal<UnsupportedError>(model(graph(node("Mish", {"x"}, {"y"})), 17)),
                    "in op set 17 it has no meaning here"));
}

TEST_F(OnnxRefusals, RefuseCyclesAndTwoOfOneName) {
  EXPECT_TRUE(holds(refusal(model(graph(
                        all(node("Add", {"x", "b"}, {"a"}), node("Relu", {"a"}, {"b"}), node("Relu", {"b"}, {"y"}))))),
                    "reads 'b', which no node before it computes"));
  EXPECT_TRUE(holds(refusal(model(graph(all(node("Relu", {"x"}, {"y"}), node("Relu", {"x"}, {"y"}))))),
                    "two values are called 'y'"));
  EXPECT_TRUE(holds(refusal(model(graph(node("Relu", {"x"}, {"z"})))), "nothing computes the result 'y'"));
}

TEST_F(OnnxRefusals, RefuseBytesThatAreNotThoseOfTheShape) {
  const auto with = [&](const std::string& weight) {
    return model(graph(all(weight, node("Mul", {"x", "w"}, {"y"}))));
  };
  EXPECT_EQ(loaded(with(initializer("w", {4}, kFloat, std::string(16, '\0')))).parameters().size(), 1u);
  EXPECT_TRUE(holds(refusal(with(initializer("w", {4}, kFloat, std::string(15, '\0')))),
                    "initializer 'w' is f32[4], 16 bytes, the file has 15 for it"));
  const std::int64_t huge = std::int64_t{1} << 39;
  EXPECT_TRUE(holds(refusal(with(initializer("w", {huge}, kFloat, "abcd"))), "the file has 4 for it"));
  EXPECT_TRUE(holds(refusal(with(initializer("w", {huge, huge}, kFloat, "abcd"))), "initializer 'w'"));
  EXPECT_TRUE(holds(refusal(with(initializer("w", {-4}, kFloat, "abcd"))), "initializer 'w'"));
  EXPECT_TRUE(holds(refusal(with(initializer("w", std::vector<std::int64_t>(9, 1), kFloat, "abcd"))), "rank 9"));
  EXPECT_TRUE(holds(refusal<UnsupportedError>(with(initializer("w", {2}, kUint16, "abcd"))), "its dtype is uint16"));
}

TEST_F(OnnxRefusals, ReadTensorsOfTheModelsFolderAlone) {
  const auto with = [&](const std::string& location, const std::string& offset, const std::string& length) {
    return model(graph(all(external("w", {4}, {{"location", location}, {"offset", offset}, {"length", length}}),
                           node("Mul", {"x", "w"}, {"y"}))));
  };
  const std::vector<float> values{9, 1, 2, 3, 4};
  const std::string bytes(reinterpret_cast<const char*>(values.data()), 20);
  std::filesystem::create_directory(folder_ / "weights");
  testing::write_bytes(folder_ / "weights/all.bin", bytes);
  Model net = loaded(with("weights/all.bin", "4", "16"));
  EXPECT_EQ(net.state_dict().at("w").to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(holds(refusal(with("weights/all.bin", "8", "16")), "ends after 20"));
  EXPECT_TRUE(holds(refusal(with("weights/all.bin", "18446744073709551615", "16")), "ends after 20"));
  EXPECT_TRUE(holds(refusal(with("weights/all.bin", "4", "12")), "its file has 12 for it"));
  EXPECT_TRUE(holds(refusal(with("weights/all.bin", "-4", "16")), "is no number"));
  EXPECT_TRUE(holds(refusal(with("/etc/passwd", "0", "16")), "not in the model's folder"));
  EXPECT_TRUE(holds(refusal(with("weights/../../x", "0", "16")), "not in the model's folder"));
  EXPECT_TRUE(holds(refusal(with("", "0", "16")), "not in the model's folder"));
  EXPECT_TRUE(holds(refusal<FileError>(with("nothing.bin", "0", "16")), "cannot be read"));
  EXPECT_TRUE(holds(refusal<FileError>(with("weights", "0", "16")), "cannot be read"));
  const testing::TemporaryFolder other;
  testing::write_bytes(other / "all.bin", bytes);
  std::filesystem::create_symlink(other / "all.bin", folder_ / "link.bin");
  EXPECT_TRUE(holds(refusal(with("link.bin", "0", "16")), "a link puts outside the model's folder"));
}

TEST_F(OnnxRefusals, RefuseMoreThanTheyRead) {
  std::string nodes;
  const std::string one = node("Relu", {"x"}, {"a"});
  for (int i = 0; i < 1'000'000; ++i) nodes += one;
  EXPECT_TRUE(holds(refusal(model(graph(nodes))), "more than 100000 nodes"));
  std::string empty;
  for (int i = 0; i < 70'000; ++i) empty += field(5, "");
  EXPECT_TRUE(holds(refusal(model(graph(empty))), "more than 32768 initializers"));
  std::string names;
  for (int i = 0; i < 3'000'000; ++i) names += field(1, "");
  EXPECT_TRUE(holds(refusal(model(graph(field(1, names)))), "more than 2097152 fields"));
  EXPECT_TRUE(holds(refusal(model(graph(field(5, field(7, std::string(17 << 20, '\x01')))))),
                    "more than 16777216 bytes of packed integers"));
}

TEST_F(OnnxRefusals, ReadLongChains) {
  std::string nodes = node("Relu", {"x"}, {"v0"});
  constexpr int kNodes = 20'000;
  for (int i = 1; i < kNodes; ++i) nodes += node("Neg", {"v" + std::to_string(i - 1)}, {"v" + std::to_string(i)});
  nodes += node("Neg", {"v" + std::to_string(kNodes - 1)}, {"y"});
  Model net = loaded(model(graph(nodes)));
  EXPECT_EQ(net(ones({1, 4})).to_vector<float>(), (std::vector<float>{1, 1, 1, 1}));
}

TEST_F(OnnxRefusals, RefuseNestedMessages) {
  // Groups within groups, and messages within messages.
  EXPECT_TRUE(holds(refusal(std::string(1 << 20, '\x0b')), "damaged, cut off, or no ONNX file"));
  EXPECT_TRUE(holds(refusal(model(graph(node("Relu", {"x"}, {"y"}))) + "\x7b\x7c"), "damaged")) << "an empty group";
  std::string nested;
  for (int i = 0; i < 2000; ++i) nested = field(6, all(field(7, nested)));
  EXPECT_TRUE(holds(refusal<UnsupportedError>(model(graph(node("If", {"x"}, {"y"}, field(5, nested))))),
                    "there is no such op here"));
}

TEST_F(OnnxRefusals, RefuseEveryPrefix) {
  const std::string whole = testing::bytes_of(FUSEJIT_SOURCE_DIR "/tests/reference/onnx/networks/classifier.onnx");
  loaded(whole);
  for (std::size_t length = 0; length < whole.size() - 1; ++length)
    EXPECT_FALSE(refusal<Error>(whole.substr(0, length)).empty()) << length;
}

TEST_F(OnnxRefusals, EndWithAnErrorOrAModelWhateverTheBytes) {
  std::vector<std::string> seeds;
  for (const char* name :
       {"networks/attention", "networks/classifier", "networks/signal", "networks/up", "ops/Slice",
        "ops/Resize_fraction", "ops/Pad_wrap", "ops/Conv_1d", "ops/Range", "ops/AveragePool_ceil_pads"})
    seeds.push_back(testing::bytes_of(FUSEJIT_SOURCE_DIR "/tests/reference/onnx/" + std::string(name) + ".onnx"));
  testing::write_bytes(folder_ / "all.bin", std::string(64, '\1'));
  seeds.push_back(
      model(graph(all(external("w", {4}, {{"location", "all.bin"}, {"offset", "8"}, {"length", "16"}}),
                      external("v", {1, 4}, {{"location", "./all.bin"}, {"offset", "32"}, {"length", "16"}}),
                      node("Mul", {"x", "w"}, {"a"}), node("Add", {"a", "v"}, {"y"})))));
  std::mt19937 random(43);
  const int count = testing::is_nightly() ? 200'000 : 2'000;
  int accepted = 0;
  for (int i = 0; i < count; ++i) {
    const testing::Allocations watch;
    try {
      loaded(mutated(seeds[static_cast<std::size_t>(i) % seeds.size()], random));
      ++accepted;
    } catch (const UserError&) {
    } catch (const UnsupportedError&) {
    } catch (const FileError&) {
    }
    EXPECT_LT(watch.largest(), std::size_t{64} << 20) << i;
  }
  EXPECT_GT(accepted, count / 50);
}

}  // namespace
}  // namespace fusejit::onnx
