// ConvolutionCall: its shapes, its text and what it refuses.
#include "runtime/cudnn/call.h"

#include <gtest/gtest.h>

#include "fusejit/error.h"

namespace fusejit::runtime::cudnn {
namespace {

ConvolutionCall convolution_call() {
  ConvolutionCall call;
  call.dtype = DType::f16;
  call.x = Shape{16, 64, 56, 28};
  call.w = Shape{32, 16, 3, 5};
  call.stride = {2, 1};
  call.padding = {1, 2, 0, 1};
  call.dilation = {2, 1};
  call.groups = 4;
  return call;
}

TEST(ConvolutionCall, ShapeOfTheResult) {
  ConvolutionCall call = convolution_call();
  EXPECT_EQ(call.y(), (Shape{16, 32, 27, 27}));  // (56+1+0 − 2·2 − 1)/2 + 1, (28+2+1 − 4 − 1)/1 + 1
  EXPECT_EQ(call.result().shape, call.y());
  call.direction = Direction::input_gradient;
  EXPECT_EQ(call.result().shape, call.x);
  call.direction = Direction::weight_gradient;
  EXPECT_EQ(call.result().shape, call.w);
}

TEST(ConvolutionCall, TextNamesEveryStep) {
  ConvolutionCall call = convolution_call();
  call.prologue = Prologue::affine_relu;
  call.side = call.bias = true;
  call.activation = Activation::leaky_relu;
  EXPECT_EQ(call.str(),
            "forward f16:nhwc affine_relu> x=[16,64,56,28] w=[32,16,3,5] stride=[2,1] padding=[1,2,0,1] dilation=[2,1] "
            "groups=4 side bias leaky_relu(0.01)");
  ConvolutionCall gradient = convolution_call();
  gradient.direction = Direction::input_gradient;
  gradient.mask = Mask::bits;
  gradient.sums = Sums::gradient;
  EXPECT_EQ(gradient.str(),
            "input_gradient f16:nhwc x=[16,64,56,28] w=[32,16,3,5] stride=[2,1] padding=[1,2,0,1] dilation=[2,1] "
            "groups=4 mask=bits sums=gradient");
}

TEST(ConvolutionCall, RefusesWhatCannotBeMeant) {
  struct Case {
    const char* sentence;
    void (*spoil)(ConvolutionCall&);
  };
  const Case cases[] = {
      {"rank 4",
       [](ConvolutionCall& c) {
         c.x = Shape{16, 64};
       }},
      {"no convolution in i32", [](ConvolutionCall& c) { c.dtype = DType::i32; }},
      {"w has 16 input channels a group, x has 64 in 2 groups", [](ConvolutionCall& c) { c.groups = 2; }},
      {"input channels", [](ConvolutionCall& c) { c.groups = 0; }},
      {"an empty tensor",
       [](ConvolutionCall& c) {
         c.x = Shape{0, 64, 56, 28};
       }},
      {"stride and dilation",
       [](ConvolutionCall& c) {
         c.stride = {0, 1};
       }},
      {"padding", [](ConvolutionCall& c) { c.padding[3] = -1; }},
      {"larger than the padded input",
       [](ConvolutionCall& c) {
         c.dilation = {40, 1};
       }},
      {"a prologue acts on x",
       [](ConvolutionCall& c) { c.direction = Direction::input_gradient, c.prologue = Prologue::affine; }},
      {"belong to the forward", [](ConvolutionCall& c) { c.direction = Direction::weight_gradient, c.bias = true; }},
      {"belong to the input gradient", [](ConvolutionCall& c) { c.mask = Mask::output; }},
      {"no side input", [](ConvolutionCall& c) { c.direction = Direction::weight_gradient, c.side = true; }},
  };
  EXPECT_NO_THROW(convolution_call().check());
  for (const Case& c : cases) {
    ConvolutionCall call = convolution_call();
    c.spoil(call);
    try {
      call.check();
      ADD_FAILURE() << "accepted: " << call.str();
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(c.sentence), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace fusejit::runtime::cudnn
