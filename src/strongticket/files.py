"""Files that appear whole or not at all, and JSON that is read strictly."""

import contextlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from strongticket.errors import StrongTicketError

JsonObject = dict[str, Any]  # entries are checked where they are read


def write_file(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write bytes, or chunks of them, under a temporary name and rename: an error leaves an older file as it was."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        with contextlib.suppress(OSError):  # if it could not be created, it cannot be removed either
            temporary.unlink()


def _cannot_write(path: Path, error: OSError) -> StrongTicketError:
    return StrongTicketError(
        f"cannot write {path}: {error.strerror or error}",
        hint="Check the path, the permissions and the free space.",
    )


def check_output(path: Path) -> None:
    """Refuse, before any work, a file name that cannot be written to."""
    if path.is_dir():
        raise StrongTicketError(f"{path} is a folder", hint="Name a file in it.")
    if not path.parent.is_dir():
        raise StrongTicketError(f"the folder {path.parent} does not exist", hint="Create it first.")
    if not os.access(path.parent, os.W_OK):
        raise StrongTicketError(f"the folder {path.parent} is not writable", hint="Choose another folder.")


@contextlib.contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Let one process at a time work on an output, a file or a folder; the second one gets an error.

    The system holds the lock, so a killed process holds nothing, though its empty lock file stays until the next run.
    """
    from filelock import FileLock, Timeout

    lock = path.with_name(f".{path.name}.lock")
    try:
        holding = FileLock(lock).acquire(timeout=0)
    except Timeout:
        raise StrongTicketError(
            f"another process is writing {path}", hint="Wait until it is done, or choose another name."
        ) from None
    except OSError as error:
        raise _cannot_write(lock, error) from error
    with holding:
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def dump_json(value: Any) -> bytes:
    """Write one line with sorted keys and no spaces: equal values have equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def parse_json(what: str, text: bytes) -> Any:
    """Read JSON as the standard has it: no repeated key, no NaN, no Infinity; errors begin with `what`."""

    def unique(pairs: list[tuple[str, Any]]) -> JsonObject:
        found: JsonObject = {}
        for key, value in pairs:
            if key in found:
                raise ValueError(f"the key {key!r:.200} appears twice")
            found[key] = value
        return found

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise StrongTicketError(f"{what} is not valid JSON: {error}") from None


def parse_record(what: str, text: bytes, *fields: set[str]) -> JsonObject:
    """Read a JSON object with exactly these fields, or those of another of several sets."""
    record = parse_json(what, text)
    if not isinstance(record, dict) or set(record) not in fields:
        found = sorted(record) if isinstance(record, dict) else type(record).__name__
        expected = " or ".join(str(sorted(each)) for each in fields)
        raise StrongTicketError(f"{what}: expected an object with {expected}, got {found}")
    return record


def json_roundtrip(name: str, value: Any) -> JsonObject:
    """Copy a dict as JSON gives it back (tuples become lists), so that saving it changes nothing."""
    if not isinstance(value, dict):
        raise StrongTicketError(f"{name} must be a dict, got {type(value).__name__}")
    try:
        copy: JsonObject = parse_json(name, dump_json(value))
        return copy
    except (TypeError, ValueError, RecursionError) as error:
        raise StrongTicketError(f"{name} must be what JSON can hold: {error}") from None


def read_text(path: Path) -> str:
    """Read a UTF-8 file; the error names the first byte that is not."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise StrongTicketError(
            f"{path} is not UTF-8 text: byte {error.start} is {error.object[error.start]:#x}",
            hint="Convert the file.",
        ) from None
