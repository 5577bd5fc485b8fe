"""What bench/cpu.py measures: workloads, and the contenders of each."""

import dataclasses
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PASSES = ("forward", "dx", "dw")


@dataclasses.dataclass(frozen=True)
class Layer:
    """A convolution of ResNet-50, how often it is there, and what a pass computes, padding left out."""

    count: int
    channels: int
    size: int
    outputs: int
    kernel: int
    stride: int = 1

    def label(self):
        stride = f"s{self.stride}" if self.stride > 1 else ""
        return f"{self.kernel}×{self.kernel}{stride} {self.channels}→{self.outputs} @{self.size}"

    def part(self, direction, batch):
        return (f"{direction} {batch} {self.channels} {self.size} {self.outputs} {self.kernel} {self.stride} "
                f"{self.kernel // 2}")

    def gflop(self, batch):
        padding = self.kernel // 2
        out = (self.size + 2 * padding - self.kernel) // self.stride + 1
        taps = sum(0 <= o * self.stride + r - padding < self.size for o in range(out) for r in range(self.kernel))
        return 2e-9 * batch * taps * taps * self.channels * self.outputs


def resnet50_layers():
    layers, inputs, size = [Layer(1, 3, 224, 64, 7, 2)], 64, 56
    for stage, blocks in enumerate([3, 4, 6, 3]):
        width, stride = 64 << stage, 1 if stage == 0 else 2
        out = size // stride
        of_stage = [Layer(1, inputs, size, width, 1), Layer(1, width, size, width, 3, stride),
                    Layer(blocks, width, out, 4 * width, 1), Layer(1, inputs, size, 4 * width, 1, stride),
                    Layer(blocks - 1, 4 * width, out, width, 1), Layer(blocks - 1, width, out, width, 3)]
        for layer in of_stage:
            same = next((i for i, l in enumerate(layers) if dataclasses.replace(l, count=layer.count) == layer), None)
            if same is None:
                layers.append(layer)
            else:
                layers[same] = dataclasses.replace(layer, count=layer.count + layers[same].count)
        inputs, size = 4 * width, out
    return layers


@dataclasses.dataclass(frozen=True)
class Pattern:
    """A few layers in training: the forward pass and every gradient for one cotangent. The convolutions are 3×3."""

    name: str
    channels: int
    size: int

    def label(self):
        return f"{self.name.replace('bn', 'BN').replace('_', '→')} {self.channels} @{self.size}"

    def part(self, batch):
        return f"{self.name} {batch} {self.channels} {self.size}"

    def gflop(self, batch):
        """Of the convolution and both of its gradients; what is element-wise counts nothing."""
        convolution = Layer(1, self.channels, self.size, self.channels, 3)
        return 3 * convolution.gflop(batch) if self.name.startswith("conv") else None


def patterns():
    """At the sizes of ResNet-50's four stages: joins as wide as its own, 3×3 convolutions as its 3×3."""
    found = [Pattern("bn_add_relu", 256 << stage, 56 >> stage) for stage in range(4)]
    for name in ("conv_bn_relu", "conv_bn_add_relu", "conv_bias_relu"):
        found += [Pattern(name, 64 << stage, 56 >> stage) for stage in range(4)]
    return found


def is_in_parts(mode):
    return mode in ("layers", "patterns")


@dataclasses.dataclass(frozen=True)
class Workload:
    key: str
    title: str
    mode: str  # train, serve, layers, patterns
    net: str
    batch: int
    size: int = 224
    dtype: str = "f32"

    def arguments(self, threads):
        """The same for every contender, whatever it is written in."""
        return ["--net", self.net, "--mode", self.mode, "--batch", str(self.batch), "--size", str(self.size),
                "--dtype", self.dtype, "--threads", str(threads)]

    def source(self):
        """As fusejit-dump calls it."""
        shape = str(self.batch) if self.net == "convnet" else f"{self.batch}x3x{self.size}x{self.size}"
        return f"{self.net}@{shape}" + (":train" if self.mode == "train" else "")

    def in_parts(self):
        """A step is a few milliseconds of one of many parts, each with a first step of its own that nobody asks for."""
        return is_in_parts(self.mode)

    def parts(self):
        """What a step may be one of: a whole step, or single passes of layers (no input gradient of the stem: training
        never needs it)."""
        if self.mode == "patterns":
            return [pattern.part(self.batch) for pattern in patterns()]
        if self.mode != "layers":
            return [""]
        return [layer.part(p, self.batch) for layer in resnet50_layers() for p in PASSES
                if not (p == "dx" and layer.channels == 3)]


WORKLOADS = [
    Workload("layers-f32", "ResNet-50's convolutions, f32, batch 16", "layers", "layers", 16),
    Workload("layers-bf16", "ResNet-50's convolutions, bf16, batch 16", "layers", "layers", 16, dtype="bf16"),
    Workload("patterns-f32", "A few layers, forward and backward, f32, batch 16", "patterns", "patterns", 16),
    Workload("resnet50-train-f32", "ResNet-50, training, f32, batch 16", "train", "resnet50", 16),
    Workload("resnet50-train-bf16", "ResNet-50, training, bf16, batch 16", "train", "resnet50", 16, dtype="bf16"),
    Workload("resnet50-serve1-f32", "ResNet-50, serving, f32, batch 1", "serve", "resnet50", 1),
    Workload("resnet50-serve16-f32", "ResNet-50, serving, f32, batch 16", "serve", "resnet50", 16),
    Workload("resnet50-serve1-bf16", "ResNet-50, serving, bf16, batch 1", "serve", "resnet50", 1, dtype="bf16"),
    Workload("resnet50-serve16-bf16", "ResNet-50, serving, bf16, batch 16", "serve", "resnet50", 16, dtype="bf16"),
    Workload("mobilenet-train-f32", "MobileNet-v2, training, f32, batch 16", "train", "mobilenet_v2", 16),
    Workload("mobilenet-serve1-f32", "MobileNet-v2, serving, f32, batch 1", "serve", "mobilenet_v2", 1),
    Workload("convnet-train-256", "Digits network, training, f32, batch 256", "train", "convnet", 256, 28),
    Workload("convnet-train-2048", "Digits network, training, f32, batch 2048", "train", "convnet", 2048, 28),
    Workload("resnet18-train-f32", "ResNet-18 on 32×32, training, f32, batch 128", "train", "resnet18", 128, 32),
]


@dataclasses.dataclass(frozen=True)
class Contender:
    name: str
    command: tuple
    peer: bool = True
    environment: tuple = ()  # pairs
    problem: str = ""        # why it cannot even be started


def own(workload, programs, threads):
    program = {"layers": "layer_contender", "patterns": "pattern_contender"}.get(workload.mode, "network_contender")
    command = (str(programs / program), *workload.arguments(threads))
    contenders = [Contender("fusejit", command, peer=False),
                  Contender("fusejit, Winograd", (*command, "--winograd", "auto"), peer=False)]
    if workload.key == "resnet50-train-f32":  # how little memory, and what that costs
        contenders.append(Contender("fusejit, least memory", (*command, "--memory-limit", "least"), peer=False))
    return contenders


def reference(programs, threads):
    """What tells the FMA peak in turn with them."""
    return Contender("FMA peak", (str(programs / "machine_peak"), "--threads", str(threads), "--in-turn", "1"))


def pytorch_forms(workload):
    """Names and flags."""
    if workload.mode == "layers":
        return [("PyTorch", []), ("PyTorch nhwc", ["--channels-last"])]
    forms = [("PyTorch eager", []), ("PyTorch eager nhwc", ["--channels-last"]),
             ("PyTorch compiled", ["--compile"]), ("PyTorch compiled nhwc", ["--compile", "--channels-last"])]
    if workload.dtype == "bf16":
        forms.append(("PyTorch compiled nhwc autocast", ["--compile", "--channels-last", "--autocast"]))
    if workload.net == "convnet":  # the batch norm that a user of PyTorch would rather take
        forms.append(("PyTorch compiled nhwc, BatchNorm2d",
                      ["--compile", "--channels-last", "--batch-norm", "ordinary"]))
    return forms


def peers(workload, python, threads, tcmalloc):
    """Every peer that could do this workload, those that cannot be started with the reason."""
    def script(name, file, extra=(), environment=(), problem=""):
        if not python.exists():
            problem = "no Python environment: bench/peers/setup.sh makes it"
        command = (str(python), str(ROOT / "bench" / "peers" / file), *workload.arguments(threads), *extra)
        return Contender(name, command, True, tuple(environment), problem)

    found = []
    for name, flags in pytorch_forms(workload):
        found.append(script(name, "pytorch_contender.py", flags))
        if workload.mode != "layers":  # single convolutions allocate one tensor
            missing = "" if tcmalloc else "no libtcmalloc_minimal.so.4 (apt-get install libtcmalloc-minimal4)"
            preloaded = [("LD_PRELOAD", tcmalloc)]
            found.append(script(name + " + tcmalloc", "pytorch_contender.py", flags, preloaded, missing))
    if not workload.in_parts():
        found.append(script("JAX", "jax_contender.py"))
    if workload.mode == "serve":
        found += [script("ONNX Runtime", "onnxruntime_contender.py"), script("OpenVINO", "openvino_contender.py")]
    if workload.mode == "layers" or (workload.mode, workload.net) == ("train", "resnet50"):
        for kind in ("OpenMP", "SYCL"):
            program = python.parent / f"onednn_contender_{kind.lower()}"
            missing = "" if program.exists() else f"no {program.name}: bench/peers/setup.sh builds it"
            # Without an ICD file of the system's, SYCL is told where its driver for processors is.
            environment = (("OMP_NUM_THREADS", str(threads)), ("ONEDNN_VERBOSE", "none"),
                           ("OCL_ICD_FILENAMES", str(python.parent.parent / "lib" / "libintelocl.so")))
            name = f"oneDNN's chain, {kind}" if workload.mode == "train" else f"oneDNN, {kind}"
            found.append(Contender(name, (str(program), *workload.arguments(threads)), True, environment, missing))
    return found
