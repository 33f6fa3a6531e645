"""The files of a Hugging Face model, from a folder or the hub. Only known names are opened, only inside the folder."""

import re
from pathlib import Path

from strongticket.errors import StrongTicketError
from strongticket.files import JsonObject, parse_json, read_text

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TOKENIZER = "tokenizer.json"
TOKENIZER_FILES = (TOKENIZER, "tokenizer_config.json", "special_tokens_map.json", "generation_config.json")
MAX_BYTES = 1 << 26  # of a JSON file: the largest tokenizers take half of that
_SHARD = re.compile(r"[\w.-]+\.safetensors")
HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_SECONDS = 10  # to wait for the hub


class ModelFolder:
    """The files of a model, in a folder as `save_pretrained` writes it or in a snapshot in the cache of the hub."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, name: str) -> Path | None:
        """The file of that name; None if it is missing. A link that leaves the folder is an error."""
        path = self.path / name
        if not path.exists():
            if path.is_symlink():
                raise StrongTicketError(f"{path} is a broken link", hint="Copy the model's folder again.")
            return None
        real, allowed = path.resolve(), [self.path.resolve()]
        if allowed[0].parent.name == "snapshots":  # the hub's cache links its files to its blobs
            allowed.append(allowed[0].parent.parent / "blobs")
        if not real.is_file() or not any(real.is_relative_to(folder) for folder in allowed):
            raise StrongTicketError(
                f"{path} is not a file of this folder: it leads to {real}",
                hint="Copy the file itself into the folder.",
            )
        return path

    def json(self, name: str) -> JsonObject | None:
        """A JSON object; None if the file is missing."""
        path = self._small_file(name)
        if path is None:
            return None
        return parse_object(str(path), path.read_bytes())

    def tokenizer_files(self) -> dict[str, str]:
        """File name -> text of the files that make the tokenizer; empty without tokenizer.json."""
        paths = {name: self._small_file(name) for name in TOKENIZER_FILES}
        return {name: read_text(path) for name, path in paths.items() if path and paths[TOKENIZER]}

    def _small_file(self, name: str) -> Path | None:
        path = self.file(name)
        if path and path.stat().st_size > MAX_BYTES:
            raise StrongTicketError(
                f"{path} has {path.stat().st_size:,} bytes: expected at most {MAX_BYTES:,}",
                hint="Check that this is the file of a model.",
            )
        return path

    def weight_files(self) -> list[Path]:
        """The safetensors files with the weights: one, or the shards that the index lists."""
        if (path := self.file(WEIGHTS)) is not None:
            return [path]
        index = self.json(INDEX)
        if index is None and any(self.path.glob("pytorch_model*.bin")):
            raise StrongTicketError(
                f"{self.path} has its weights in pytorch_model.bin, a pickle, which can run code when it is read",
                hint="Convert it where you trust it: load the model with transformers, then "
                "model.save_pretrained(folder) writes model.safetensors.",
            )
        if index is None:
            raise StrongTicketError(
                f"{self.path} has no {WEIGHTS}",
                hint="Save the model with save_pretrained, or download it again.",
            )
        names = index.get("weight_map")
        if not isinstance(names, dict) or not names or not all(type(name) is str for name in names.values()):
            raise StrongTicketError(f"{self.path / INDEX}: expected weight_map, from tensor to file name")
        paths = []
        for name in sorted(set(names.values())):
            if not _SHARD.fullmatch(name):
                raise StrongTicketError(
                    f"{self.path / INDEX} names the file {name!r}: expected a .safetensors file of this folder"
                )
            if (path := self.file(name)) is None:
                raise StrongTicketError(f"{self.path / name} is missing", hint="Copy the model again, whole.")
            paths.append(path)
        return paths


def open_folder(target: str) -> ModelFolder:
    """The folder of that path; else of that name on the hub, downloaded once."""
    path = Path(target)
    if path.is_dir():
        return ModelFolder(path)
    if path.exists():
        raise StrongTicketError(f"{target} is a file", hint="Give the folder with config.json and weights.")
    wanted = [CONFIG, WEIGHTS, INDEX, "model-*-of-*.safetensors", *TOKENIZER_FILES]
    return ModelFolder(from_hub(target, CONFIG, wanted))


def from_hub(name: str, file: str, wanted: list[str]) -> Path:
    """The snapshot of a repository on the hub, only its files of the names `wanted`; no waiting without a network.

    Args:
        name: of the repository; what looks like a misspelt path is an error, and the hub is not asked.
        file: one that the repository must have.
        wanted: names or patterns of the files to download.
    """
    path = Path(name)
    if not HUB_NAME.fullmatch(name) or path.suffix == ".ticket":
        raise StrongTicketError(f"{name}: no such folder", hint="Check the path.")
    if "/" in name and path.parent.is_dir():  # the user means a folder here, not an account of the hub
        raise StrongTicketError(f"{name}: no such folder in {path.parent}", hint="Check the path.")
    try:
        import huggingface_hub as hub
    except ImportError:
        raise StrongTicketError(
            f"{name}: no such folder",
            hint="Check the path. Loading from the hub by this name needs strongticket[huggingface].",
        ) from None
    try:
        # Without a network it finds what was downloaded before.
        folder = Path(hub.snapshot_download(name, allow_patterns=wanted, etag_timeout=_SECONDS))
        (folder / file).stat()
        return folder
    except Exception as error:  # what it raises depends on the network and its version
        raise StrongTicketError(
            f"{name} is not a folder, and its {file} cannot be loaded from the Hugging Face hub "
            f"({type(error).__name__})",
            hint=f"Check the name and the network, or give a folder with {file}.",
        ) from error


def parse_object(what: str, text: bytes) -> JsonObject:
    """Read a JSON object; errors begin with `what`."""
    value = parse_json(what, text)
    if not isinstance(value, dict):
        raise StrongTicketError(f"{what}: expected a JSON object, got a {type(value).__name__}")
    return value
