// oneDNN as a contender of bench/cpu.py: single convolutions, and ResNet-50's training step as a chain of primitives.
// Layers run in the formats that their primitives choose; weights and images are in them already, as benchdnn measures.
#include "bench/contest/contender.h"

#include "bench/peers/onednn/chain.h"

namespace {

using onednn::Chain;
using onednn::Dims;
using onednn::Tag;
using onednn::Type;
using onednn::ValueRef;

ValueRef bottleneck(Chain& chain, const ValueRef& x, int width, int stride) {
  ValueRef y = chain.batch_norm(chain.conv(x, width, 1, 1), true);
  y = chain.batch_norm(chain.conv(y, width, 3, stride), true);
  y = chain.batch_norm(chain.conv(y, 4 * width, 1, 1), false);
  const bool same = stride == 1 && x->data.get_desc().get_dims()[1] == 4 * width;
  return chain.add_relu(y, same ? x : chain.batch_norm(chain.conv(x, 4 * width, 1, stride), false));
}

std::unique_ptr<Chain> resnet50(Type type, int batch, int size) {
  auto chain = std::make_unique<Chain>(type, 0.01f);
  ValueRef x = chain->conv(chain->input({batch, 3, size, size}), 64, 7, 2, false);
  x = chain->max_pool(chain->batch_norm(x, true), 3, 2, 1);
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    for (int block = 0; block < blocks[stage]; ++block) {
      x = bottleneck(*chain, x, 64 << stage, block == 0 && stage > 0 ? 2 : 1);
    }
  }
  chain->finish(chain->linear(chain->average_pool(x), 1000));
  return chain;
}

// One pass of one convolution.
class LayerPass {
 public:
  LayerPass(const contest::LayerPart& l, Type type) : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    const auto any = [&](const Dims& dims) { return dnnl::memory::desc(dims, type, Tag::any); };
    const auto x = any({l.batch, l.channels, l.size, l.size}), y = any({l.batch, l.outputs, l.out(), l.out()});
    const auto w = any({l.outputs, l.channels, l.kernel, l.kernel});
    const Dims strides(2, l.stride), padding(2, l.padding);
    const auto direct = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc pd(engine_, dnnl::prop_kind::forward_training, direct, x, w, y,
                                                       strides, padding, padding);
    if (l.pass == "forward") {
      take(dnnl::convolution_forward(pd),
           {{DNNL_ARG_SRC, pd.src_desc()}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, pd.dst_desc()}});
    } else if (l.pass == "dx") {
      const dnnl::convolution_backward_data::primitive_desc of(engine_, direct, x, w, y, strides, padding, padding, pd);
      take(dnnl::convolution_backward_data(of), {{DNNL_ARG_DIFF_DST, of.diff_dst_desc()},
                                                 {DNNL_ARG_WEIGHTS, of.weights_desc()},
                                                 {DNNL_ARG_DIFF_SRC, of.diff_src_desc()}});
    } else {
      const dnnl::convolution_backward_weights::primitive_desc of(engine_, direct, x, w, y, strides, padding, padding,
                                                                  pd);
      take(dnnl::convolution_backward_weights(of), {{DNNL_ARG_DIFF_DST, of.diff_dst_desc()},
                                                    {DNNL_ARG_SRC, of.src_desc()},
                                                    {DNNL_ARG_DIFF_WEIGHTS, of.diff_weights_desc()}});
    }
  }
  void run() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  void take(const dnnl::primitive& primitive, const std::vector<std::pair<int, dnnl::memory::desc>>& arguments) {
    primitive_ = primitive;
    for (const auto& [name, desc] : arguments) {
      const dnnl::memory value(desc, engine_);
      onednn::fill(value, 0.25f, 0.1f, stream_);
      arguments_[name] = value;
    }
  }
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

int contend(const contest::Flags& flags) {
  const double held_before = contest::resident_mib("VmRSS");
  const Type type = flags.text("dtype", "f32") == "bf16" ? Type::bf16 : Type::f32;
  const dnnl_version_t* version = dnnl_version();
  const std::string name = "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor);
  if (flags.text("mode", "layers") == "layers") {
    std::string now;
    std::unique_ptr<LayerPass> pass;
    return contest::serve(name, held_before, [&](const std::string& part) {
      if (part != now) {
        pass.reset();
        pass = std::make_unique<LayerPass>(contest::LayerPart(part), type);
        now = part;
      }
      pass->run();
      return contest::StepResult{};
    });
  }
  const std::string mode = flags.text("mode", "");
  if ((mode != "train" && mode != "moved") || flags.text("net", "") != "resnet50") {
    throw std::invalid_argument("the chain is ResNet-50's in training");
  }
  const auto made = [&] { return resnet50(type, flags.number("batch", 16), flags.number("size", 224)); };
  if (mode == "moved") {
    std::cout << "resnet50, batch " << flags.number("batch", 16) << ", " << name << ": " << (made()->moved_bytes() >> 20)
              << " MiB a step\n";
    return 0;
  }
  std::unique_ptr<Chain> chain;
  return contest::serve(name, held_before, [&](const std::string&) {
    if (!chain) chain = made();
    return contest::StepResult{.loss = chain->step()};
  });
}

}  // namespace

int main(int argc, char** argv) { return contest::run("onednn_contender", argc, argv, contend); }
