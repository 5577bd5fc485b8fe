"""Models of one ONNX op each, and what ONNX Runtime computes for them."""

import dataclasses

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from . import inputs
from .npz import version_numbers, write_npz


@dataclasses.dataclass
class Const:
    """An operand that is an initializer, not an input of the model."""

    array: np.ndarray


def x(*shape, low=-2.0, high=2.0, label="x"):
    return inputs.uniform(f"{label} {shape}", shape, low, high)


def w(*shape):
    return Const(inputs.uniform(f"w {shape}", shape, -1, 1))


def ints(*values):
    return Const(np.array(values, np.int64))


def f32(*values):
    return Const(np.array(values, np.float32))


def number(value):
    return Const(np.array(value, np.float32))


def i64(*shape, low=-6, high=7):
    return inputs.integers(f"i {shape}", shape, low, high)


def flags(*shape, label="b"):
    return inputs.booleans(f"{label} {shape}", shape)


CASES = []


def case(name, op, *operands, opset=17, results=1, **attributes):
    CASES.append((name, op, operands, opset, results, attributes))


def element_wise():
    for op in ("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Neg", "Reciprocal", "Round", "Sign", "Sin", "Relu",
               "Sigmoid", "Tanh", "Softplus", "Softsign", "Elu", "Selu", "Celu", "LeakyRelu", "HardSigmoid",
               "ThresholdedRelu", "Identity"):
        case(op, op, x(3, 5))
    case("HardSwish", "HardSwish", x(3, 5, low=-5, high=5))
    case("Mish", "Mish", x(3, 5), opset=18)
    case("Gelu", "Gelu", x(3, 5), opset=20)
    case("Gelu_tanh", "Gelu", x(3, 5), opset=20, approximate="tanh")
    for op in ("Log", "Sqrt"):
        case(op, op, x(3, 5, low=0.1))
    odd = np.array([[1, np.inf, -np.inf], [np.nan, 0, -1]], np.float32)
    case("IsNaN", "IsNaN", odd, opset=20)
    case("IsInf", "IsInf", odd, opset=20)
    case("Not", "Not", flags(3, 4))
    case("LeakyRelu_slope", "LeakyRelu", x(3, 5), alpha=0.3)
    case("Elu_alpha", "Elu", x(3, 5), alpha=0.7)
    case("Selu_own", "Selu", x(3, 5), alpha=1.2, gamma=1.5)
    case("Celu_alpha", "Celu", x(3, 5), alpha=0.6)
    case("HardSigmoid_torch", "HardSigmoid", x(3, 5, low=-5, high=5), alpha=1 / 6, beta=0.5)
    case("ThresholdedRelu_alpha", "ThresholdedRelu", x(3, 5), alpha=0.4)
    case("PRelu", "PRelu", x(2, 4, 3, 3), w(4, 1, 1))
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"):
        low = 0.2 if op in ("Div", "Pow") else -2.0
        case(op, op, x(2, 3, 4, low=low), x(3, 1, low=low, label="y"))
        case(op + "_number", op, x(2, 3, 4, low=low), number(1.5))
    case("Sub_from_number", "Sub", number(1.5), x(2, 3))
    case("Div_integers", "Div", i64(3, 5), np.array([-3, 2, 5, -1, 4], np.int64))
    case("Pow_mixed", "Pow", i64(3, 5), number(2.0))
    case("Mod", "Mod", i64(3, 5), np.array([-3, 2, 5, -1, 4], np.int64))
    case("Mod_floats", "Mod", x(3, 5), x(5, low=0.3, label="y"), fmod=1)
    for op in ("Sum", "Mean"):
        case(op, op, x(2, 3), x(3, label="y"), x(2, 1, label="z"))
    for op in ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
        case(op, op, i64(3, 5, low=0, high=3), inputs.integers("j", (5,), 0, 3))
    for op in ("And", "Or", "Xor"):
        case(op, op, flags(3, 4), flags(4, label="c"))
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        case(op, op, i64(3, 4), i64(4), opset=18)
    case("BitwiseNot", "BitwiseNot", i64(3, 4), opset=18)
    case("Where", "Where", flags(3, 1), x(3, 4), x(4, label="y"))
    case("Clip", "Clip", x(3, 5), number(-0.5), number(1.0))
    case("Clip_6", "Clip", x(3, 5, low=-3, high=9), number(0.0), number(6.0))
    case("Clip_above", "Clip", x(3, 5), None, number(0.5))
    case("Cast", "Cast", x(3, 5, low=-9, high=9), to=TensorProto.INT32)
    case("Cast_bool", "Cast", i64(3, 5, low=0, high=2), to=TensorProto.BOOL)
    case("CastLike", "CastLike", i64(3, 5), number(0.0), opset=19)
    case("Dropout", "Dropout", x(3, 5), number(0.5))
    for op in ("Softmax", "LogSoftmax"):
        case(op, op, x(2, 3, 5))
        case(op + "_axis", op, x(2, 3, 5), axis=1)


def reductions():
    for op in ("ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare",
               "ReduceLogSum", "ReduceLogSumExp"):
        low = 0.1 if op == "ReduceLogSum" else -2.0
        case(op + "_13", op, x(2, 3, 4, low=low), opset=13, axes=[-1, 0], keepdims=0)
        case(op, op, x(2, 3, 4, low=low), ints(1), opset=18)
        case(op + "_all", op, x(2, 3, 4, low=low), opset=18, keepdims=0)
    case("ReduceSum", "ReduceSum", x(2, 3, 4), ints(1, 2), opset=13, keepdims=0)
    case("ReduceSum_nothing", "ReduceSum", x(2, 3, 4), opset=13, noop_with_empty_axes=1)
    case("ReduceSum_integers", "ReduceSum", i64(2, 3, 4).astype(np.int32), ints(0), opset=13)
    for op in ("ArgMax", "ArgMin"):
        case(op, op, x(3, 5), axis=1, keepdims=0)
        case(op + "_default", op, x(3, 5))


def shapes():
    case("Reshape", "Reshape", x(2, 3, 4), ints(0, -1), opset=13)
    case("Reshape_zero", "Reshape", np.zeros((0, 3), np.float32), ints(3, 0), opset=14, allowzero=1)
    case("Flatten", "Flatten", x(2, 3, 4))
    case("Flatten_0", "Flatten", x(2, 3, 4), axis=0)
    case("Flatten_last", "Flatten", x(2, 3, 4), axis=-1)
    case("Transpose", "Transpose", x(2, 3, 4))
    case("Transpose_perm", "Transpose", x(2, 3, 4), perm=[1, 0, 2])
    case("Squeeze", "Squeeze", x(1, 3, 1), ints(-1))
    case("Squeeze_all", "Squeeze", x(1, 3, 1))
    case("Unsqueeze", "Unsqueeze", x(3, 4), ints(-1, 0))
    case("Expand", "Expand", x(3, 1), ints(2, 1, 4))
    case("Tile", "Tile", x(2, 3), ints(2, 3))
    case("Concat", "Concat", x(2, 3), x(2, 1, label="y"), axis=-1)
    case("Concat_many", "Concat", *[x(1, 2, label=f"x{i}") for i in range(70)], axis=0)
    case("Split_13", "Split", x(6, 2), opset=13, results=3)
    case("Split_sizes", "Split", x(6, 2), ints(1, 3, 2), opset=13, results=3)
    case("Split", "Split", x(2, 7), opset=18, results=3, axis=1, num_outputs=3)
    case("Slice", "Slice", x(4, 5), ints(1, -3), ints(3, 9))
    case("Slice_steps", "Slice", x(4, 7), ints(6), ints(-9), ints(1), ints(-2))
    case("Slice_reversed", "Slice", x(4, 7), ints(-1, 3), ints(-(2**63), 0), ints(-1, 0), ints(-1, -1))
    case("Slice_beyond", "Slice", x(4, 5), ints(99, -99), ints(1, -99), ints(0, 1), ints(-1, -1))
    for mode in ("constant", "reflect", "edge"):
        case("Pad_" + mode, "Pad", x(3, 4), ints(1, 2, 0, 3), opset=13, mode=mode)
    case("Pad", "Pad", x(3, 4), ints(1, 2, 0, 3), number(0.5), opset=13)
    case("Pad_crop", "Pad", x(3, 4), ints(-1, 2, 0, -2), opset=13)
    case("Pad_axes", "Pad", x(3, 4), ints(1, 2), number(-1.0), ints(-1), opset=18)
    case("Pad_wrap", "Pad", x(3, 4), ints(1, 2, 0, 3), opset=19, mode="wrap")
    case("Shape", "Shape", x(2, 3, 4), opset=13)
    case("Shape_range", "Shape", x(2, 3, 4), start=1, end=-1)
    case("Size", "Size", x(2, 3, 4))
    case("Constant", "Constant", value=numpy_helper.from_array(x(2, 3)))
    case("Constant_floats", "Constant", value_floats=[1.5, -2.0])
    case("Constant_ints", "Constant", value_ints=[3, -1])
    case("Constant_float", "Constant", value_float=0.25)
    case("Constant_int", "Constant", value_int=7)
    case("ConstantOfShape", "ConstantOfShape", ints(2, 3))
    case("ConstantOfShape_value", "ConstantOfShape", ints(4), value=numpy_helper.from_array(np.array([5], np.int64)))
    case("Range", "Range", Const(np.array(3, np.int64)), Const(np.array(-4, np.int64)), Const(np.array(-2, np.int64)))
    case("Range_floats", "Range", number(0.5), number(2.1), number(0.25))
    case("DepthToSpace", "DepthToSpace", x(2, 8, 2, 3), blocksize=2)
    case("DepthToSpace_CRD", "DepthToSpace", x(2, 8, 2, 3), blocksize=2, mode="CRD")
    case("SpaceToDepth", "SpaceToDepth", x(2, 3, 4, 6), blocksize=2)
    case("Gather", "Gather", x(4, 5), ints(3, -4), axis=0)
    case("Gather_run", "Gather", x(4, 5), ints(1, 2), axis=1)
    case("Gather_one", "Gather", x(4, 5), Const(np.array(-2, np.int64)), axis=1)
    case("Gather_input", "Gather", x(4, 5), np.array([[0, 3], [-1, 2]], np.int64), axis=1)
    case("GatherElements", "GatherElements", x(3, 4), inputs.integers("places", (3, 2), -4, 4), axis=1)
    case("OneHot", "OneHot", np.array([[0, 3], [-1, 9]], np.int64), ints(4), f32(0.5, 2.0))
    case("OneHot_axis", "OneHot", np.array([0, 3, 1], np.int64), ints(4), f32(0.0, 1.0), axis=0)


def products():
    case("Conv", "Conv", x(2, 4, 7, 6), w(6, 4, 3, 3), w(6), pads=[1, 0, 2, 1], strides=[2, 1])
    case("Conv_groups", "Conv", x(2, 4, 7, 6), w(6, 2, 3, 2), group=2, dilations=[2, 1])
    case("Conv_upper", "Conv", x(1, 2, 7, 6), w(3, 2, 2, 3), auto_pad="SAME_UPPER", strides=[2, 2])
    case("Conv_lower", "Conv", x(1, 2, 7, 6), w(3, 2, 2, 3), auto_pad="SAME_LOWER", strides=[2, 2])
    case("Conv_valid", "Conv", x(1, 2, 7, 6), w(3, 2, 2, 3), auto_pad="VALID")
    case("Conv_1d", "Conv", x(2, 3, 9), w(4, 3, 3), w(4), pads=[2, 1], strides=[2], kernel_shape=[3])
    case("ConvTranspose", "ConvTranspose", x(2, 4, 4, 3), w(4, 3, 3, 2), w(3), strides=[2, 3], pads=[1, 0, 0, 1],
         output_padding=[1, 0])
    case("ConvTranspose_groups", "ConvTranspose", x(2, 4, 4, 3), w(4, 2, 3, 3), group=2, dilations=[1, 2])
    case("ConvTranspose_shape", "ConvTranspose", x(1, 2, 4, 3), w(2, 3, 3, 3), strides=[2, 2], output_shape=[8, 6])
    case("ConvTranspose_upper", "ConvTranspose", x(1, 2, 4, 3), w(2, 3, 3, 3), strides=[2, 2], auto_pad="SAME_UPPER")
    case("ConvTranspose_1d", "ConvTranspose", x(2, 3, 5), w(3, 2, 4), strides=[2], pads=[1, 2])
    case("MatMul", "MatMul", x(2, 1, 3, 4), x(5, 4, 2, label="y"))
    case("MatMul_row", "MatMul", x(4), x(2, 4, 3, label="y"))
    case("MatMul_column", "MatMul", x(2, 3, 4), x(4, label="y"))
    case("MatMul_dot", "MatMul", x(4), x(4, label="y"))
    case("Gemm", "Gemm", x(3, 4), w(5, 4), w(5), transB=1)
    case("Gemm_scaled", "Gemm", x(4, 3), w(4, 5), w(3, 1), transA=1, alpha=0.5, beta=2.0)
    case("Gemm_plain", "Gemm", x(3, 4), w(4, 5))


def pools():
    for op in ("MaxPool", "AveragePool"):
        case(op, op, x(2, 3, 7, 8), kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
        case(op + "_ceil", op, x(2, 3, 7, 8), kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, opset=21)
        # A third window would begin in the pads behind the image, where none may.
        case(op + "_ceil_none", op, x(2, 3, 4, 4), kernel_shape=[2, 2], strides=[3, 3], pads=[1, 1, 1, 1], ceil_mode=1,
             opset=21)
        case(op + "_upper", op, x(2, 3, 7, 8), kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
        case(op + "_1d", op, x(2, 3, 9), kernel_shape=[3], strides=[2])
    case("MaxPool_dilated", "MaxPool", x(2, 3, 7, 8), kernel_shape=[2, 3], dilations=[2, 2])
    case("AveragePool_pads", "AveragePool", x(2, 3, 7, 8), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
         count_include_pad=1)
    case("AveragePool_ceil_pads", "AveragePool", x(2, 3, 6, 8), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1],
         count_include_pad=1, ceil_mode=1, opset=21)
    case("GlobalAveragePool", "GlobalAveragePool", x(2, 3, 4, 5))
    case("GlobalMaxPool", "GlobalMaxPool", x(2, 3, 4, 5))


def resizes():
    def resize(name, image, scales, sizes=None, opset=17, **attributes):
        operands = [None, f32(*scales)] if scales else [None, None, ints(*sizes)]
        case("Resize_" + name, "Resize", image, *operands, opset=opset, **attributes)

    image = x(1, 2, 4, 5)
    resize("torch_nearest", image, [1, 1, 2, 3], coordinate_transformation_mode="asymmetric", nearest_mode="floor",
           mode="nearest")
    resize("half_pixel", image, [1, 1, 2, 2])
    resize("fraction", image, [1, 1, 1.7, 0.6], coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    resize("ceil", image, None, [1, 2, 7, 3], nearest_mode="ceil")
    resize("prefer_ceil", image, None, [1, 2, 8, 10], nearest_mode="round_prefer_ceil")
    resize("align_corners", image, None, [1, 2, 7, 9], coordinate_transformation_mode="align_corners")
    resize("channels", image, None, [1, 4, 4, 5], coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    for mode in ("half_pixel", "pytorch_half_pixel", "align_corners"):
        resize("linear_" + mode, image, None, [1, 2, 7, 10], mode="linear", coordinate_transformation_mode=mode)
    resize("linear_scales", image, [1, 1, 2, 2], mode="linear")
    resize("linear_1d", x(1, 2, 5), [1, 1, 2], mode="linear")
    resize("axes", image, None, [8, 10], opset=18, axes=[2, 3])
    resize("symmetric", image, [1, 1, 1.7, 2.3], opset=19, coordinate_transformation_mode="half_pixel_symmetric")


def norms():
    image = x(2, 4, 3, 3)
    positive = Const(inputs.uniform("var", (4,), 0.5, 1.5))
    four = [Const(inputs.uniform(name, (4,), -1, 1)) for name in ("scale", "bias", "mean")]
    for opset in (13, 17):
        case(f"BatchNormalization_{opset}", "BatchNormalization", image, *four, positive, opset=opset, epsilon=1e-3)
    case("BatchNormalization_2d", "BatchNormalization", x(3, 4), *four, positive)
    case("InstanceNormalization", "InstanceNormalization", image, *four[:2], epsilon=1e-3)
    case("LayerNormalization", "LayerNormalization", x(2, 3, 4), w(4), w(4))
    case("LayerNormalization_axis", "LayerNormalization", x(2, 3, 4), w(3, 4), axis=1, epsilon=1e-3)
    case("GroupNormalization_18", "GroupNormalization", image, w(2), w(2), opset=18, num_groups=2)
    case("GroupNormalization_21", "GroupNormalization", image, *four[:2], opset=21, num_groups=2)
    case("LRN", "LRN", x(2, 6, 3, 3), size=3, alpha=0.5, beta=0.6, bias=1.2)


def narrow():
    """int8, uint8 and int16, as far as ONNX Runtime computes with them."""
    for dtype in (np.int8, np.uint8, np.int16):
        ends = np.iinfo(dtype)
        a = np.array([[ends.min, 1, 7, 100], [ends.max, 5, 90, ends.min + 1]], dtype)
        b = np.array([ends.max, 2, 3, 100], dtype)
        kind, name = helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), "_" + np.dtype(dtype).name
        for op in ("Add", "Sub", "Mul", "Div", "Mod", "Equal", "Less", "GreaterOrEqual"):
            case(op + name, op, a, b)
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
            case(op + name, op, a, b, opset=18)
        case("BitwiseNot" + name, "BitwiseNot", a, opset=18)
        for op in ("Abs", "Sign", "Flatten") + (() if dtype == np.uint8 else ("Neg",)):
            case(op + name, op, a)
        case("Add_number" + name, "Add", a, Const(np.array(100, dtype)))
        case("Cast_to" + name, "Cast", i64(3, 5, low=-300, high=300), to=kind)
        case("Cast_floats_to" + name, "Cast", x(3, 5, low=0, high=120), to=kind)
        case("Cast_from" + name, "Cast", a, to=TensorProto.FLOAT)
        case("Concat" + name, "Concat", a, a, axis=1)
        case("Slice" + name, "Slice", a, ints(0), ints(1))
        case("Gather" + name, "Gather", a, np.array([3, 0]), axis=1)
        case("GatherElements" + name, "GatherElements", a, np.array([[3, 0], [1, 2]]), axis=1)
        case("Tile" + name, "Tile", a, ints(2, 1))
        case("Expand" + name, "Expand", b, ints(3, 4))
        case("Transpose" + name, "Transpose", a)
        if dtype == np.int16:
            continue
        for op in ("Max", "Min"):
            case(op + name, op, a, b)
        for op in ("ReduceMax", "ReduceMin"):
            case(op + name, op, a, ints(1), opset=18, keepdims=0)
        for op in ("ArgMax", "ArgMin"):
            case(op + name, op, a, axis=1)
        case("Clip" + name, "Clip", a, Const(np.array(2, dtype)), Const(np.array(50, dtype)))
        case("Where" + name, "Where", flags(2, 1), a, b)
        case("Pad" + name, "Pad", a, ints(1, 0, 0, 2), Const(np.array(7, dtype)))
        case("MaxPool" + name, "MaxPool", inputs.integers("pool", (1, 2, 5, 6), int(ends.min), int(ends.max) + 1, dtype),
             kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
    case("Relu_int8", "Relu", np.array([[-128, -1, 0, 127]], np.int8), opset=14)


def model_of(op, operands, opset, results, attributes):
    names, given, constants = [], {}, []
    for i, operand in enumerate(operands):
        names.append("" if operand is None else f"c{i}" if isinstance(operand, Const) else f"x{i}")
        if isinstance(operand, Const):
            constants.append(numpy_helper.from_array(operand.array, names[-1]))
        elif operand is not None:
            given[names[-1]] = operand
    outputs = [f"out{i}" for i in range(results)]
    node = helper.make_node(op, names, outputs, name=f"the {op}", **attributes)
    ports = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for name, a in given.items()]
    # The dtypes of the results are worked out by ONNX's own rules.
    graph = helper.make_graph([node], "one_op", ports, [], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, producer_name="")
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    known = {value.name: value for value in inferred.graph.value_info}
    for name in outputs:
        kind = known[name].type.tensor_type.elem_type if name in known else TensorProto.FLOAT
        model.graph.output.append(helper.make_tensor_value_info(name, kind, None))
    return model, given


def write(folder):
    element_wise()
    reductions()
    shapes()
    products()
    pools()
    resizes()
    norms()
    narrow()
    arrays = {"onnxruntime_version": version_numbers(onnxruntime.__version__)}
    failed = []
    for name, op, operands, opset, results, attributes in CASES:
        try:
            model, given = model_of(op, operands, opset, results, attributes)
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            computed = session.run(None, given)
        except Exception as error:  # noqa: BLE001 - all of them are told at once
            failed.append(f"{name}: {error}")
            continue
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
        arrays |= {f"{name}.{key}": array for key, array in given.items()}
        arrays |= {f"{name}.out{i}": array for i, array in enumerate(computed)}
    if failed:
        raise ValueError("\n".join(failed))
    write_npz(folder.parent / "ops.npz", arrays)
    return len(CASES)
