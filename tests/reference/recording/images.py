"""Small PNG and JPEG files of every kind that is read, and what Pillow makes of them.

PNG files are written here, since Pillow writes neither interlaced ones nor few or many bits; JPEG files by Pillow.
`expected.npz` has, as i32 [H,W,C], for each file what Pillow's convert("RGB") makes of it, `<file>.rgb`, and
convert("L"), `<file>.gray`, and what resize(BILINEAR) makes of photo.png and gray.png,
`resize.<file>.<height>x<width>`. Pillow 13 resamples in another order: record with one before it.

    python recording/images.py      needs NumPy and Pillow alone
"""

import io
import pathlib
import struct
import sys
import zlib

import numpy as np
from PIL import Image, __version__

HERE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

from recording.inputs import integers  # noqa: E402
from recording.npz import version_numbers, write_npz  # noqa: E402

HEIGHT, WIDTH = 19, 23
ADAM7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))
KINDS = {1: 0, 2: 4, 3: 2, 4: 6}  # PNG's colour type by channels
SIZES = ((7, 9), (19, 46), (38, 23), (5, 40), (33, 8), (1, 1), (64, 64), (19, 23))


def photo(label, height=HEIGHT, width=WIDTH, channels=3):
    """Smooth waves with some noise, u8."""
    y, x, c = np.mgrid[0:height, 0:width, 0:channels]
    waves = 128 + 60 * ((x * 5 + c * 7) % 32 < 16) + 2 * y - 3 * ((x + 2 * y) % 9)
    return np.clip(waves + integers(label, (height, width, channels), -20, 20), 0, 255).astype(np.uint8)


def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def rows(samples, bits):
    """Unfiltered scan lines of samples [H,W,C]."""
    lines = []
    for line in samples.reshape(samples.shape[0], -1):
        if bits == 16:
            packed = line.astype(">u2").tobytes()
        elif bits == 8:
            packed = line.astype(np.uint8).tobytes()
        else:
            digits = ((line[:, None] >> np.arange(bits - 1, -1, -1)) & 1).astype(np.uint8)
            packed = np.packbits(digits.reshape(-1)).tobytes()
        lines.append(b"\0" + packed)
    return b"".join(lines)


def png(samples, bits=8, interlaced=False, palette=None, transparent=None, kind=None):
    height, width, channels = samples.shape
    kind = KINDS[channels] if kind is None else kind
    data = b"".join(rows(samples[y::dy, x::dx], bits) for y, x, dy, dx in ADAM7 if samples[y::dy, x::dx].size)
    if not interlaced:
        data = rows(samples, bits)
    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, interlaced))
    if palette is not None:
        out += chunk(b"PLTE", palette.astype(np.uint8).tobytes())
    if transparent is not None:
        out += chunk(b"tRNS", transparent)
    out += chunk(b"tEXt", b"Comment\0made by images.py")
    return out + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b"")


def jpeg(pixels, mode=None, **options):
    out = io.BytesIO()
    image = Image.fromarray(pixels if pixels.shape[2] > 1 else pixels[:, :, 0], mode)
    image.save(out, "JPEG", **options)
    return out.getvalue()


def files():
    rgb = photo("rgb")
    palette = integers("palette", (16, 3), 0, 256)
    orientation = b"Exif\0\0MM\0*\0\0\0\x08" + struct.pack(">HHHIHHI", 1, 0x112, 3, 1, 6, 0, 0)
    wide = photo("16 bits").astype(np.int64) * 256 + integers("low bytes", (HEIGHT, WIDTH, 3), 0, 256)
    return {
        "photo.png": png(rgb),
        "gray.png": png(photo("gray", channels=1)),
        "gray_alpha.png": png(photo("gray alpha", channels=2)),
        "rgb_alpha.png": png(photo("rgb alpha", channels=4)),
        "interlaced.png": png(rgb, interlaced=True),
        "bits1.png": png(integers("bits 1", (HEIGHT, WIDTH, 1), 0, 2), bits=1),
        "bits2_interlaced.png": png(integers("bits 2", (HEIGHT, WIDTH, 1), 0, 4), bits=2, interlaced=True),
        "bits4.png": png(integers("bits 4", (HEIGHT, WIDTH, 1), 0, 16), bits=4),
        "bits16.png": png(wide, bits=16),
        "palette.png": png(integers("indices", (HEIGHT, WIDTH, 1), 0, 16), bits=4, palette=palette, kind=3),
        "palette_alpha.png": png(integers("indices", (HEIGHT, WIDTH, 1), 0, 16), bits=8, palette=palette, kind=3,
                                 transparent=bytes(range(0, 160, 10))),
        "rgb_transparent.png": png(rgb, transparent=struct.pack(">HHH", *rgb[3, 4].tolist())),
        "photo.jpg": jpeg(rgb, quality=85),
        "full_chroma.jpg": jpeg(rgb, quality=95, subsampling=0),
        "progressive.jpg": jpeg(rgb, quality=85, progressive=True),
        "gray.jpg": jpeg(photo("gray", channels=1), quality=85),
        "cmyk.jpg": jpeg(photo("cmyk", channels=4), mode="CMYK", quality=85),
        "rotated.jpg": jpeg(rgb, quality=85, exif=orientation),
    }


def record(folder):
    folder.mkdir(exist_ok=True)
    arrays = {"pillow_version": version_numbers(__version__)}
    made = files()
    for name, data in made.items():
        (folder / name).write_bytes(data)
        for mode, key in (("RGB", "rgb"), ("L", "gray")):
            pixels = np.asarray(Image.open(io.BytesIO(data)).convert(mode), dtype=np.int32)
            arrays[f"{name}.{key}"] = pixels.reshape(HEIGHT, WIDTH, -1)
    for name in ("photo.png", "gray.png"):
        image = Image.open(io.BytesIO(made[name]))
        for height, width in SIZES:
            pixels = np.asarray(image.resize((width, height), Image.BILINEAR), dtype=np.int32)
            arrays[f"resize.{name}.{height}x{width}"] = pixels.reshape(height, width, -1)
    write_npz(folder / "expected.npz", arrays)
    print(f"{len(made)} images")


if __name__ == "__main__":
    record(HERE / "images")
