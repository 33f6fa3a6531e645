"""Images and texts with labels, from every place they may come from; and what is refused."""

import gzip
import json
import os
import subprocess
import sys

import datasets
import numpy as np
import pytest
from PIL import Image

from strongticket.data.labelled import ImageItems, TextItems, load_images, load_texts
from strongticket.errors import StrongTicketError
from strongticket.models.tokenizers import Characters


def idx(array):
    header = bytes((0, 0, 8, array.ndim)) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return header + array.tobytes()


@pytest.fixture
def pictures():
    return np.arange(10 * 16, dtype=np.uint8).reshape(10, 4, 4)


def test_digits():
    found = load_images("builtin")
    assert found.train.shape[1:] == (1, 8, 8)
    assert len(found.train) + len(found.valid) == 1797
    assert found.train.max() == 255
    assert len(found.labels) == 10
    item = ImageItems(found.train, found.train_labels, found.pixels)[5]
    mean, std = found.pixels
    assert item["labels"] == found.train_labels[5]
    np.testing.assert_allclose(item["pixel_values"] * std + mean, found.train[5] / 255, atol=1e-6)


@pytest.mark.parametrize("packed", [False, True])
def test_idx_files(tmp_path, pictures, packed):
    labels = np.arange(10, dtype=np.uint8) % 3
    for part, end in (("train", 10), ("t10k", 4)):
        for name, array in (("images-idx3", pictures[:end]), ("labels-idx1", labels[:end])):
            data = idx(array)
            path = tmp_path / f"{part}-{name}-ubyte{'.gz' * packed}"
            path.write_bytes(gzip.compress(data) if packed else data)
    found = load_images(str(tmp_path))
    np.testing.assert_array_equal(found.train[:, 0], pictures)
    np.testing.assert_array_equal(found.valid_labels, labels[:4])
    assert found.labels == ("0", "1", "2")
    assert load_images(str(tmp_path), 8).train.shape == (10, 1, 8, 8)


def test_damaged_idx_files(tmp_path, pictures):
    names = [f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    for name in names:
        (tmp_path / name).write_bytes(idx(pictures[:, 0, 0] if "labels" in name else pictures))
    bad = tmp_path / names[0]
    for data, said in (
        (idx(pictures)[:-1], "does not have the 160 bytes"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "declares"),
        (b"\0\0\x0d\x03", "not an idx file"),
        (idx(pictures[:3]), "the labels"),
    ):
        bad.write_bytes(data)
        with pytest.raises(StrongTicketError, match=said):
            load_images(str(tmp_path))
    bad.rename(tmp_path / (names[0] + ".gz"))
    with pytest.raises(StrongTicketError, match="cannot read"):
        load_images(str(tmp_path))


@pytest.mark.parametrize("parts", [False, True])
def test_a_folder_of_images(tmp_path, pictures, parts):
    for part in ("train/", "valid/") if parts else ("",):
        for label in ("cat", "dog"):
            (tmp_path / f"{part}{label}").mkdir(parents=True)
            for i in range(5):
                Image.fromarray(pictures[i]).save(tmp_path / f"{part}{label}" / f"{i}.png")
    found = load_images(str(tmp_path))
    assert found.labels == ("cat", "dog")
    assert (len(found.train), len(found.valid)) == ((10, 10) if parts else (8, 2))
    np.testing.assert_array_equal(found.train[0, 0], pictures[0])


def test_bad_folders_of_images(tmp_path, pictures):
    with pytest.raises(StrongTicketError, match="has 0 classes"):
        load_images(str(tmp_path))
    for label in ("cat", "dog"):
        (tmp_path / label).mkdir()
        for i in range(3):
            Image.fromarray(pictures[i, : 3 + i % 2]).save(tmp_path / label / f"{i}.png")
    with pytest.raises(StrongTicketError, match="differ in size"):
        load_images(str(tmp_path))
    sound = (tmp_path / "cat" / "0.png").read_bytes()
    for damaged in (b"no picture", b"", sound[:50], sound[:40]):
        (tmp_path / "cat" / "0.png").write_bytes(damaged)
        with pytest.raises(StrongTicketError, match=r"cannot read the image .*cat/0\.png"):
            load_images(str(tmp_path), 4)


def test_a_huge_picture_is_refused(tmp_path, pictures):
    """A few bytes can declare any number of pixels."""
    for label in ("cat", "dog"):
        (tmp_path / label).mkdir()
        Image.fromarray(pictures[0]).save(tmp_path / label / "0.bmp")
    huge = bytearray((tmp_path / "cat" / "0.bmp").read_bytes())
    huge[18:26] = (1 << 20).to_bytes(4, "little") * 2
    (tmp_path / "cat" / "0.bmp").write_bytes(huge)
    with pytest.raises(StrongTicketError, match=r"cat/0\.bmp.*exceeds limit"):
        load_images(str(tmp_path))


def test_a_hugging_face_dataset_of_images(tmp_path, pictures):
    features = datasets.Features(image=datasets.Image(), label=datasets.ClassLabel(names=["a", "b"]))
    rows = {"image": [Image.fromarray(p) for p in pictures], "label": [i % 2 for i in range(10)]}
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(tmp_path / "set")
    found = load_images(str(tmp_path / "set"))
    assert (len(found.train), len(found.valid), found.labels) == (8, 2, ("a", "b"))
    np.testing.assert_array_equal(found.train[:, 0], pictures[:8])


ROWS = [(f"text {i}", "ab"[i % 2]) for i in range(10)]


def write_tables(folder):
    (folder / "t.csv").write_text("text,label\n" + "".join(f"{t},{label}\n" for t, label in ROWS))
    (folder / "t.tsv").write_text("label\tmore\ttext\n" + "".join(f"{label}\t\t{t}\n" for t, label in ROWS))
    (folder / "t.jsonl").write_text("".join(json.dumps({"text": t, "label": n}) + "\n" for t, n in ROWS))


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl"])
def test_tables(tmp_path, name):
    folder = tmp_path / "od[d] *"
    folder.mkdir()
    write_tables(folder)
    found = load_texts(str(folder / name))
    assert (found.name, found.labels) == ("t", ("a", "b"))
    assert (found.train, found.valid) == ([t for t, _ in ROWS[:8]], [t for t, _ in ROWS[8:]])
    assert (found.train_labels.tolist(), found.valid_labels.tolist()) == ([0, 1] * 4, [0, 1])


def test_tables_with_parts_and_saved_sets(tmp_path):
    write_tables(tmp_path)
    (tmp_path / "t.csv").rename(tmp_path / "train.csv")
    (tmp_path / "t.jsonl").rename(tmp_path / "test.jsonl")
    found = load_texts(str(tmp_path))
    assert found.train == found.valid == [t for t, _ in ROWS]
    columns = {"text": [t for t, _ in ROWS], "label": ["ab".index(label) for _, label in ROWS]}
    features = datasets.Features(text=datasets.Value("string"), label=datasets.ClassLabel(names=["y", "x"]))
    datasets.Dataset.from_dict(columns, features=features).save_to_disk(tmp_path / "set")
    before = sorted((tmp_path / "set").iterdir())
    found = load_texts(str(tmp_path / "set"))
    assert (found.train, found.labels) == ([t for t, _ in ROWS[:8]], ("y", "x"))
    assert sorted((tmp_path / "set").iterdir()) == before


def test_a_text_may_look_like_a_number_or_like_nothing(tmp_path):
    (tmp_path / "t.csv").write_text("text,label\nNA,01\n1.50,1\nnull,01\n007,1\n")
    found = load_texts(str(tmp_path / "t.csv"))
    assert (found.train, found.valid, found.labels) == (["NA", "1.50"], ["null", "007"], ("01", "1"))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.csv", "words,label\na,b\n", r"not found: \['text'\]"),
        ("t.csv", "", "No columns"),
        ("t.csv", 'text,label\n"abc,b\n', "EOF inside string"),
        ("t.csv", "text,label\na,b\n", "has 1 classes"),
        ("t.jsonl", '{"text": "a", "label": 1}\n{"text":', "JSON parse error"),
        ("t.jsonl", '{"text": "a", "label": 1}\n{"label": 1}', "a row has no text"),
        ("t.jsonl", '{"words": "a", "label": 1}\n', "no column 'text'"),
        ("t.csv", "text,label\n\udcff,b\n", "not UTF-8 text: byte 11 is 0xff"),
        ("t.txt", "text,label\na,b\n", "not a file, folder or known set of texts"),
    ],
)
def test_damaged_tables(tmp_path, name, text, said):
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(StrongTicketError, match=said):
        load_texts(str(tmp_path / name))


def test_what_is_not_there(tmp_path):
    with pytest.raises(StrongTicketError, match="not a file, folder or known set of images"):
        load_images(str(tmp_path / "nothing"))
    with pytest.raises(StrongTicketError, match="no texts to train on"):
        load_texts(str(tmp_path))


@pytest.mark.slow
def test_reading_leaves_no_trace(tmp_path):
    """Neither a cache, nor a request to the hub, nor a change of a library's settings."""
    write_tables(tmp_path)
    for label in "ab":
        (tmp_path / label).mkdir()
        for i in range(5):
            Image.new("L", (4, 4), i).save(tmp_path / label / f"{i}.png")
    program = f"""
import socket, datasets
from strongticket.data.labelled import load_images, load_texts
def refuse(*_): raise AssertionError("reached for the network")
def settings():
    return datasets.are_progress_bars_disabled(), datasets.logging.get_verbosity(), datasets.is_caching_enabled()
socket.socket.connect = socket.getaddrinfo = refuse
before = settings()
for name in ("t.csv", "t.tsv", "t.jsonl"):
    load_texts({str(tmp_path)!r} + "/" + name)
load_images({str(tmp_path)!r})
assert settings() == before
"""
    files = sorted(tmp_path.rglob("*"))
    environment = os.environ | {"HF_HOME": str(tmp_path / "home")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(tmp_path.rglob("*")) == files


def test_items_of_text_begin_with_a_token_and_are_padded():
    tokenizer = Characters("abc")
    items = TextItems(["ab", "abcabc"], np.array([1, 0]), tokenizer, 5)
    assert items[0]["input_ids"].tolist() == [4, 0, 1, 3, 3]
    assert items[0]["attention_mask"].tolist() == [1, 1, 1, 0, 0]
    assert items[1]["input_ids"].tolist() == [4, 0, 1, 2, 0]
    assert int(items[0]["labels"]) == 1


def test_the_built_in_texts_are_balanced():
    found = load_texts("builtin")
    assert found.labels == ("code", "prose")
    for texts, labels in ((found.train, found.train_labels), (found.valid, found.valid_labels)):
        assert labels.mean() == 0.5
        assert len(texts) == len(labels)
