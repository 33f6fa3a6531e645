"""A folder that no attacked ticket or model may have read: the kernel reports whoever opens a file in it.

Only Linux reports (inotify), and it sees the libraries written in Rust as well, which Python's own audit events miss.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save

LINK = b"link to "  # a crafted file whose content starts with it becomes a link to what follows
_OPENED = 0x20  # IN_OPEN
_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name


def make_outside(root: Path) -> tuple[Path, Path]:
    """(where attacks lie, a folder `outside` beside it with files that they would like to have read)."""
    here, outside = root / "here", root / "outside"
    here.mkdir()
    outside.mkdir()
    tokenizer = {"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}
    texts = {
        "config.json": '{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}',
        "tokenizer.json": json.dumps(tokenizer),
        "vocab.json": '{"a": 0}',
        "merges.txt": "#version: 0.2\n",
    }
    for name, text in texts.items():
        (outside / name).write_text(text)
    (outside / "model.safetensors").write_bytes(save({"x": np.zeros(3, np.float32)}))
    return here, outside


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Write crafted files; LINK makes a link."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if data.startswith(LINK):
            path.symlink_to(data.removeprefix(LINK).decode())
        else:
            path.write_bytes(data)


class Outside:
    """Watches the files of a folder.

    folder: filled before; what is opened from now on is reported
    """

    def __init__(self, folder: Path) -> None:
        self._reader = -1
        if sys.platform != "linux":
            return
        libc = ctypes.CDLL(None, use_errno=True)
        self._reader = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._reader < 0 or libc.inotify_add_watch(self._reader, os.fsencode(folder), _OPENED) < 0:
            raise OSError(ctypes.get_errno(), "inotify", str(folder))

    def opened(self) -> list[str]:
        """Names of the files opened since the last call; a listing of the folder itself is not one."""
        found: list[str] = []
        while self._reader >= 0:
            try:
                data = os.read(self._reader, 1 << 16)
            except BlockingIOError:
                break
            while data:
                *_, length = _HEAD.unpack_from(data)
                name = data[_HEAD.size : _HEAD.size + length].rstrip(b"\0")
                data = data[_HEAD.size + length :]
                if name:
                    found.append(os.fsdecode(name))
        return found
