"""Matrices as small PNG pictures, one pixel per entry; the page enlarges them without smoothing.

Each picture comes once for light and once for dark: the pixels are the same, only the palette differs.
"""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass

import numpy as np

MAX_SIDE = 512  # larger matrices are averaged in blocks: no screen shows more, and the page stays small

_Colour = tuple[int, int, int]


@dataclass(frozen=True)
class Ramp:
    """Colours at equal steps from the lowest to the highest value, for each theme."""

    light: tuple[_Colour, ...]
    dark: tuple[_Colour, ...]


# Blue against orange can be distinguished by colour-blind readers; the middle is close to the page's own ground.
DIVERGING = Ramp(
    light=((140, 61, 4), (217, 119, 40), (244, 240, 232), (70, 130, 205), (16, 66, 140)),
    dark=((255, 196, 128), (205, 116, 46), (36, 40, 47), (72, 132, 214), (170, 208, 255)),
)
SEQUENTIAL = Ramp(
    light=((244, 240, 232), (120, 165, 222), (16, 66, 140)),
    dark=((36, 40, 47), (62, 116, 194), (190, 220, 255)),
)
KEPT = Ramp(light=((230, 226, 217), (31, 95, 191)), dark=((44, 49, 57), (127, 178, 255)))


@dataclass(frozen=True)
class Picture:
    """Two data URIs of one picture, and its size in pixels."""

    light: str
    dark: str
    width: int
    height: int


def mask_picture(mask: np.ndarray) -> Picture:
    """Draw a mask: kept in the accent colour, dropped in the colour of the ground.

    mask: (rows, columns), boolean
    """
    return _picture(_shrink(mask), KEPT)


def matrix_picture(values: np.ndarray, low: float, high: float, ramp: Ramp) -> Picture:
    """Draw a matrix.

    values: (rows, columns)
    low, high: the values at the ends of the ramp
    ramp: of colours
    """
    span = high - low or 1.0
    return _picture(np.clip((_shrink(values) - low) / span, 0.0, 1.0), ramp)


def _shrink(values: np.ndarray) -> np.ndarray:
    """Average in blocks, the longer side first: a large mask becomes small before it becomes floats."""
    for axis in sorted((0, 1), key=lambda axis: -values.shape[axis]):
        step = -(-values.shape[axis] // MAX_SIDE)
        if step > 1:
            starts = np.arange(0, values.shape[axis], step)
            counts = np.diff(np.append(starts, values.shape[axis]))
            sums = np.add.reduceat(values, starts, axis=axis, dtype=np.float64)
            values = sums / (counts[:, None] if axis == 0 else counts)
    return values.astype(np.float64)


def _picture(levels: np.ndarray, ramp: Ramp) -> Picture:
    height, width = levels.shape
    pixels = np.rint(levels * 255).astype(np.uint8)
    light, dark = (_data_uri(_png(pixels, _palette(colours))) for colours in (ramp.light, ramp.dark))
    return Picture(light, dark, width, height)


def _palette(colours: tuple[_Colour, ...]) -> np.ndarray:
    stops = np.linspace(0, 255, len(colours))
    channels = [np.interp(np.arange(256), stops, channel) for channel in np.array(colours).T]
    palette: np.ndarray = np.rint(np.stack(channels, axis=1)).astype(np.uint8)
    return palette


def mask_png(mask: np.ndarray) -> bytes:
    """A mask as the bytes of a PNG file, in light colours; mask: (rows, columns), boolean."""
    return _png(255 * mask.astype(np.uint8), _palette(KEPT.light))


def _data_uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _png(pixels: np.ndarray, palette: np.ndarray) -> bytes:
    """8-bit palette PNG (PNG specification, colour type 3)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = pixels.shape
    lines = np.zeros((height, width + 1), dtype=np.uint8)  # each line starts with its filter type: 0, none
    lines[:, 1:] = pixels
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        [
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            chunk(b"PLTE", palette.tobytes()),
            chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
            chunk(b"IEND", b""),
        ]
    )
