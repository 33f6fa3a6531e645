"""A mask as a PNG file, one pixel per weight (PNG specification, colour type 3)."""

import struct
import zlib

import numpy as np

_DROPPED, _KEPT = (230, 226, 217), (31, 95, 191)


def mask_png(mask: np.ndarray) -> bytes:
    """The bytes of a PNG file; mask: (rows, columns), boolean."""
    height, width = mask.shape
    lines = np.zeros((height, width + 1), dtype=np.uint8)  # each line starts with its filter type: 0, none
    lines[:, 1:] = mask
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0),
        b"PLTE": bytes(_DROPPED + _KEPT),
        b"IDAT": zlib.compress(lines.tobytes(), 9),
        b"IEND": b"",
    }
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks.items()
    )
