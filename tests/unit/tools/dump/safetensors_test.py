#!/usr/bin/env python3
"""Files of safetensors against a second reader and writer, made of the specification alone: eight bytes of length, a JSON
header, the elements. fusejit-dump reads what is written here, and what it writes is read here."""

import json
import struct
import unittest

from dump_program import Case, run, text

GRAPH = """graph @g(%x: f32[2,3], %half: bf16[3], %n: i64[], %mask: bool[2,2], %wide: f64[2], %f: f16[2], %i: i32[1], %j: i8[3],
         %u: u8[3], %k: i16[2]) {
  %0 = mul(%x, 2) : f32[2,3]
  return %0, %half, %n, %mask, %wide, %f, %i, %j, %u, %k
}
"""
# name: (dtype, shape, bytes); bf16 values are the upper halves of f32 ones.
VALUES = {
    "x": ("F32", [2, 3], struct.pack("<6f", 1, 2, 3, 4, 5, -6.5)),
    "half": ("BF16", [3], b"".join(struct.pack("<f", v)[2:] for v in (1.0, -2.0, 0.15625))),
    "n": ("I64", [], struct.pack("<q", -(2**40))),
    "mask": ("BOOL", [2, 2], bytes([1, 0, 0, 1])),
    "wide": ("F64", [2], struct.pack("<2d", 0.1, 1e300)),
    "f": ("F16", [2], struct.pack("<2e", 0.5, -3)),
    "i": ("I32", [1], struct.pack("<i", -7)),
    "j": ("I8", [3], struct.pack("<3b", -128, 0, 127)),
    "u": ("U8", [3], struct.pack("<3B", 0, 200, 255)),
    "k": ("I16", [2], struct.pack("<2h", -32768, 32767)),
}


ITEM = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I16": 2, "BOOL": 1, "I8": 1, "U8": 1}


def written(arrays, metadata=None):
    header, elements = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in sorted(arrays.items(), key=lambda named: -ITEM[named[1][0]]):
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(elements), len(elements) + len(data)]}
        elements += data
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    return struct.pack("<Q", len(encoded)) + encoded + elements


def once(pairs):
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


def read(data):
    """Every rule of the specification is held against the file, and that elements are aligned."""
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length].decode("utf-8"), object_pairs_hook=once)
    assert data[8:9] == b"{" and length <= 100_000_000
    elements = data[8 + length:]
    metadata = header.pop("__metadata__", {})
    assert all(isinstance(value, str) for value in metadata.values())
    at, arrays = 0, {}
    for name, entry in sorted(header.items(), key=lambda named: named[1]["data_offsets"]):
        assert set(entry) == {"dtype", "shape", "data_offsets"}
        begin, end = entry["data_offsets"]
        count = 1
        for extent in entry["shape"]:
            count *= extent
        assert begin == at and end - begin == count * ITEM[entry["dtype"]], (name, entry)
        assert (8 + length + begin) % ITEM[entry["dtype"]] == 0, f"{name} is not aligned"
        arrays[name] = (entry["dtype"], entry["shape"], elements[begin:end])
        at = end
    assert at == len(elements)
    return arrays, metadata


class Safetensors(Case):
    def setUp(self):
        super().setUp()
        self.graph = self.write("all.fj", GRAPH)
        self.inputs, self.outputs = self.folder / "in.safetensors", self.folder / "out.safetensors"
        self.inputs.write_bytes(written(VALUES, {"format": "pt", "note": "\u00e9\n"}))

    def test_the_reader_here_refuses_what_is_wrong(self):
        data = written(VALUES)
        read(data)
        for damaged in (data + b"x", data[:-1], data.replace(b"[0, 8]", b"[0, 4]")):
            with self.assertRaises(AssertionError):
                read(damaged)

    def test_files_go_both_ways(self):
        text("run", self.graph, "--inputs", self.inputs, "--outputs", self.outputs)
        arrays, metadata = read(self.outputs.read_bytes())
        self.assertEqual(metadata, {})
        self.assertEqual(list(arrays["out0"]), ["F32", [2, 3], struct.pack("<6f", 2, 4, 6, 8, 10, -13)])
        for number, name in enumerate(VALUES):
            if number > 0:
                self.assertEqual(list(arrays[f"out{number}"]), list(VALUES[name]), name)
        self.assertEqual(len(arrays), len(VALUES))

    def test_results_are_compared_with_such_a_file(self):
        text("run", self.graph, "--inputs", self.inputs, "--outputs", self.outputs)
        text("run", self.graph, "--inputs", self.inputs, "--check", self.outputs)
        arrays, _ = read(self.outputs.read_bytes())
        arrays["out1"] = ("BF16", [3], b"".join(struct.pack("<f", v)[2:] for v in (1.0, -2.0, 99.0)))
        self.outputs.write_bytes(written(arrays))
        answer = run("run", self.graph, "--inputs", self.inputs, "--check", self.outputs)
        self.assertEqual(answer.returncode, 3, answer.stderr)
        self.assertIn(b"out1: 1 of 3 elements differ", answer.stderr)

    def test_both_formats_say_the_same(self):
        archive = self.folder / "out.npz"
        text("run", self.graph, "--inputs", self.inputs, "--outputs", archive)
        text("run", self.graph, "--inputs", self.inputs, "--check", archive)

    def test_refusals(self):
        for damage, sentence in (
            (lambda data: data[:-1], "ends at byte"),
            (lambda data: data[:20], "cut off in its header"),
            (lambda data: b"\xff" * 8 + data, "is not a safetensors file"),
            (lambda data: data.replace(b'"F32"', b'"U32"'), "dtype 'U32', which is not read"),
            (lambda data: data.replace(b'"x"', b'"y"'), "array 'y' belongs to no parameter of graph @g"),
        ):
            self.inputs.write_bytes(damage(written(VALUES)))
            answer = run("run", self.graph, "--inputs", self.inputs)
            self.assertEqual(answer.returncode, 2, answer.stderr)
            self.assertIn(sentence, answer.stderr.decode())
            self.assertEqual(answer.stderr.count(b"\n"), 1, answer.stderr)


if __name__ == "__main__":
    unittest.main()
