// Values of modules from state_dicts and files: all or nothing with one sentence that says what does not fit, or what
// fits and a list of the rest.
#include <gtest/gtest.h>

#include <fstream>

#include "frontend/io/npz.h"
#include "fusejit/fusejit.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace fusejit {
namespace {

using testing::error_of;

class Loading : public ::testing::Test {
 protected:
  void SetUp() override {
    set_options({.engine = "graph_interpreter"});
    manual_seed(11);
  }
  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_ / "values.npz";
};

using Values = std::map<std::string, std::vector<float>>;
Values values_of(const StateDict& tensors) {
  Values values;
  for (const auto& [name, tensor] : tensors) values[name] = tensor.to_vector<float>();
  return values;
}

nn::Sequential linear_and_norm() { return nn::Sequential(nn::Linear(3, 2), nn::BatchNorm2d(2)); }

TEST_F(Loading, BringsEveryValueBack) {
  nn::Sequential a = linear_and_norm(), b = linear_and_norm();
  ASSERT_NE(values_of(a.state_dict()), values_of(b.state_dict()));
  a.save(path_);
  EXPECT_TRUE(b.load(path_).empty());
  EXPECT_EQ(values_of(a.state_dict()), values_of(b.state_dict()));
}

TEST_F(Loading, PassesOverTheCountOfBatches) {
  nn::Sequential a = linear_and_norm(), b = linear_and_norm();
  StateDict values = a.state_dict();
  values["1.num_batches_tracked"] = zeros({}, i64);
  EXPECT_TRUE(b.load_state_dict(values).empty());
  save(values, path_);
  EXPECT_TRUE(b.load(path_).empty());
  EXPECT_EQ(values_of(a.state_dict()), values_of(b.state_dict()));
}

TEST_F(Loading, SaysWhatDoesNotFitInOneSentence) {
  nn::Sequential net = linear_and_norm();
  const Values before = values_of(net.state_dict());
  StateDict values = linear_and_norm().state_dict();
  values.erase("1.bias");
  values["0.weight"] = ones({2, 4});
  values["0.bias"] = ones({2}, f64);
  values["9.extra"] = ones({1});
  const std::string wrong =
      "of the module's 6 values 1 is missing ('1.bias'), 1 is unknown ('9.extra'), 2 are misshapen "
      "('0.weight' is f32[2,4] and should be f32[2,3], '0.bias' is f64[2] and should be f32[2]); "
      "{.convert = true} rounds floats of another dtype, as '0.bias' from f64 to f32";
  EXPECT_EQ(error_of([&] { net.load_state_dict(values); }), "load_state_dict: " + wrong);
  save(values, path_);
  EXPECT_EQ(error_of([&] { net.load(path_); }), path_ + ": " + wrong);
  EXPECT_EQ(values_of(net.state_dict()), before) << "all or nothing";
}

// Of each kind five names and how many there are.
TEST_F(Loading, NamesTheFirstFiveOfEachKind) {
  nn::Sequential net, wider;
  for (int i = 0; i < 7; ++i) net.push_back(nn::Linear(2, 2)), wider.push_back(nn::Linear(3, 2));
  StateDict values;
  for (int i = 1; i < 7; ++i)
    values[std::to_string(i) + ".weight"] = wider.state_dict().at(std::to_string(i) + ".weight");
  for (int i = 0; i < 5000; ++i) values["unknown" + std::to_string(i)] = zeros({});
  EXPECT_EQ(error_of([&] { net.load_state_dict(values); }),
            "load_state_dict: of the module's 14 values 8 are missing ('0.weight', '0.bias', '1.bias', '2.bias', "
            "'3.bias' and 3 more), 5000 are unknown ('unknown0', 'unknown1', 'unknown10', 'unknown100', "
            "'unknown1000' and 4995 more), 6 are misshapen ('1.weight' is f32[2,3] and should be f32[2,2], "
            "'2.weight' is f32[2,3] and should be f32[2,2], '3.weight' is f32[2,3] and should be f32[2,2], "
            "'4.weight' is f32[2,3] and should be f32[2,2], '5.weight' is f32[2,3] and should be f32[2,2] and 1 more)");
}

// Weights for another number of classes: all but the last layer, which is listed.
TEST_F(Loading, WithoutStrictnessLoadsWhatFits) {
  const auto make = [](std::int64_t classes, bool deep) {
    nn::Sequential net(nn::Conv2d(1, 2, 3), nn::BatchNorm2d(2), nn::Flatten(), nn::Linear(2, classes));
    if (deep) net.push_back(nn::ReLU()), net.push_back(nn::Linear(classes, 1));
    return net;
  };
  const nn::Sequential source = make(5, false);
  StateDict values = source.state_dict();
  values["features.0.weight"] = ones({1});
  values["1.num_batches_tracked"] = zeros({}, i64);
  save(values, path_);
  for (const bool from_file : {false, true}) {
    nn::Sequential net = make(3, true);
    const Values before = values_of(net.state_dict());
    const nn::Unloaded left =
        from_file ? net.load(path_, {.strict = false}) : net.load_state_dict(values, {.strict = false});
    EXPECT_FALSE(left.empty());
    EXPECT_EQ(left.missing, (std::vector<std::string>{"5.weight", "5.bias"}));
    EXPECT_EQ(left.unexpected, (std::vector<std::string>{"features.0.weight"}));
    ASSERT_EQ(left.misshapen.size(), 2u);
    EXPECT_EQ(left.misshapen[0].name, "3.weight");
    EXPECT_EQ(left.misshapen[0].given.shape, (Shape{5, 2}));
    EXPECT_EQ(left.misshapen[0].own.shape, (Shape{3, 2}));
    EXPECT_EQ(left.misshapen[1].name, "3.bias");
    Values expected = values_of(source.state_dict());
    for (const char* own : {"3.weight", "3.bias", "5.weight", "5.bias"}) expected[own] = before.at(own);
    EXPECT_EQ(values_of(net.state_dict()), expected);
  }
}

// f32 values for a module in a narrow type: refused, or rounded where that is asked for.
TEST_F(Loading, ConvertsFloatsOnRequest) {
  const nn::Sequential source = linear_and_norm();
  const StateDict values = source.state_dict();
  for (const DType narrow : {bf16, f16, f64}) {
    for (const std::string& file : {std::string(), path_, folder_ / "values.safetensors"}) {
      if (!file.empty()) source.save(file);
      nn::Sequential net = linear_and_norm();
      net.to(narrow);
      const Values before = values_of(net.state_dict());
      const auto load = [&](nn::LoadOptions options) {
        return file.empty() ? net.load_state_dict(values, options) : net.load(file, options);
      };
      const std::string refused = error_of([&] { load({}); }), type(name(narrow));
      EXPECT_NE(refused.find("'0.weight' is f32[2,3] and should be " + type + "[2,3]"), std::string::npos) << refused;
      EXPECT_NE(refused.find("; {.convert = true} rounds floats of another dtype, as '0.weight' from f32 to " + type),
                std::string::npos)
          << refused;
      EXPECT_EQ(load({.strict = false}).misshapen.size(), 6u);
      EXPECT_EQ(values_of(net.state_dict()), before);

      const nn::Unloaded report = load({.convert = true});
      EXPECT_TRUE(report.empty());
      ASSERT_EQ(report.converted.size(), 6u);
      EXPECT_EQ(report.converted[0].name, "0.weight");
      EXPECT_EQ(report.converted[0].given.dtype, f32);
      EXPECT_EQ(report.converted[0].own.dtype, narrow);
      for (const auto& [name, value] : net.state_dict()) {
        EXPECT_EQ(value.dtype(), narrow) << name;
        EXPECT_EQ(value.to_vector<float>(), values.at(name).to(narrow).to_vector<float>()) << name;
      }
      EXPECT_TRUE(load({.convert = true}).converted.size() == 6u) << "of what is given, not of what is there";
    }
  }
}

// What is no float, or of another shape, is not what convert is for.
TEST_F(Loading, ConvertsFloatsAlone) {
  nn::Linear layer(3, 2);
  layer.to(bf16);
  EXPECT_EQ(error_of([&] {
              layer.load_state_dict({{"weight", ones({2, 4})}, {"bias", zeros({2}, i64)}}, {.convert = true});
            }),
            "load_state_dict: of the module's 2 values 2 are misshapen ('weight' is f32[2,4] and should be bf16[2,3], "
            "'bias' is i64[2] and should be bf16[2])");
  const nn::Unloaded report = layer.load_state_dict({{"weight", ones({2, 3})}}, {.strict = false, .convert = true});
  EXPECT_EQ(report.missing, (std::vector<std::string>{"bias"}));
  EXPECT_EQ(report.converted.size(), 1u);
  EXPECT_EQ(layer.weight().value().to_vector<float>(), std::vector<float>(6, 1));
  EXPECT_TRUE(layer.weight().value().needs_grad());
}

// The caller's tensors stay the caller's, and the parameters ones to train.
TEST_F(Loading, LeavesTheGivenTensorsAlone) {
  nn::Linear layer(2, 1);
  const Tensor weight = ones({1, 2});
  layer.load_state_dict({{"weight", weight}}, {.strict = false});
  EXPECT_FALSE(weight.needs_grad());
  EXPECT_TRUE(layer.weight().value().needs_grad());
}

TEST_F(Loading, RefusesFilesThatAreNone) {
  nn::Linear layer(3, 2);
  for (const bool strict : {true, false}) {
    std::ofstream(path_) << "this is no archive";
    EXPECT_NE(error_of([&] { layer.load(path_, {.strict = strict}); }).find("not a zip file"), std::string::npos);
    EXPECT_THROW(layer.load("/nonexistent.npz", {.strict = strict}), FileError);
  }
}

// The other format says the same of the same mistakes.
TEST_F(Loading, SafetensorsLoadAsArchivesDo) {
  const std::string path = folder_ / "values.safetensors";
  nn::Sequential a = linear_and_norm(), b = linear_and_norm();
  a.to(bf16), b.to(bf16);
  for (const std::string& file : {path, path_}) {  // in an archive bf16 arrays have other names
    b.parameters()[0].set(zeros({2, 3}, bf16));
    a.save(file);
    ASSERT_NE(values_of(a.state_dict()), values_of(b.state_dict()));
    EXPECT_TRUE(b.load(file).empty());
    EXPECT_EQ(values_of(a.state_dict()), values_of(b.state_dict())) << file;
    EXPECT_EQ(values_of(load(file)), values_of(a.state_dict())) << file;
  }
  nn::Sequential wider;
  for (int i = 0; i < 7; ++i) wider.push_back(nn::Linear(3, 2));
  EXPECT_EQ(error_of([&] { wider.load(path); }),
            path +
                ": of the module's 14 values 10 are missing ('2.weight', '2.bias', '3.weight', '3.bias', '4.weight' "
                "and 5 more), 2 are unknown ('1.running_mean', '1.running_var'), 4 are misshapen ('0.weight' is "
                "bf16[2,3] and should be f32[2,3], '0.bias' is bf16[2] and should be f32[2], '1.weight' is bf16[2] "
                "and should be f32[2,3], '1.bias' is bf16[2] and should be f32[2]); {.convert = true} rounds floats of "
                "another "
                "dtype, as '0.weight' from bf16 to f32");
  const nn::Unloaded left = wider.load(path, {.strict = false});
  EXPECT_EQ(left.missing.size() + left.unexpected.size() + left.misshapen.size(), 16u);
  EXPECT_EQ(error_of([&] { save(ones({2}), path); }),
            "save: " + path + " holds tensors by name, one alone is written as an .npy");
  EXPECT_EQ(error_of([&] {
              save(StateDict{{"x", ones({2})}}, path_, {{"format", "pt"}});
            }),
            path_ + ": an .npz has no place for metadata, a .safetensors has");
}

TEST_F(Loading, OptimisersSayWhatDoesNotFit) {
  std::vector<nn::Parameter> parameters;
  for (int i = 0; i < 7; ++i) parameters.emplace_back("p", ones({2}));
  optim::Adam opt(parameters);
  const std::string path = folder_ / "adam.safetensors";
  save(opt.state_dict(), path);
  opt.load_state_dict(load(path));
  EXPECT_EQ(error_of([&] {
              opt.load_state_dict({{"steps", zeros({}, i64)}, {"7.exp_avg", zeros({2})}});
            }),
            "Adam: of the optimiser's 17 values 16 are missing ('0.exp_avg', '0.exp_avg_sq', '1.exp_avg', "
            "'1.exp_avg_sq', '2.exp_avg' and 11 more), 1 is unknown ('7.exp_avg')");
  StateDict values = opt.state_dict();
  for (int i = 0; i < 6; ++i) values[std::to_string(i) + ".exp_avg"] = zeros({3});
  EXPECT_NE(error_of([&] { opt.load_state_dict(values); }).find("6 are misshapen ('0.exp_avg' is f32[3] and should be"),
            std::string::npos);
  EXPECT_NE(error_of([&] { opt.load_state_dict(values); }).find(" and 1 more)"), std::string::npos);
}

// A bf16 array travels under a name of its own, so that a file may hold two for one value.
TEST_F(Loading, RefusesTwoArraysOfOneName) {
  nn::Linear layer(3, 2);
  const io::NamedArray wide{"bias", f32, {2}, std::vector<std::byte>(8)};
  const io::NamedArray half{io::stored_name("bias", bf16), bf16, {2}, std::vector<std::byte>(4)};
  io::write_npz(path_, std::vector{wide, half});
  EXPECT_NE(error_of([&] { layer.load(path_); }).find("there are two arrays named 'bias'"), std::string::npos);
}

}  // namespace
}  // namespace fusejit
