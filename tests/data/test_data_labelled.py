"""Images and texts with labels, from every place they may come from; and what is refused."""

import gzip

import datasets
import numpy as np
import pytest
from PIL import Image

from strongticket.data.images import ImageItems, load_images
from strongticket.data.labelled_text import TextItems, load_texts
from strongticket.data.tokenizers import Characters
from strongticket.errors import StrongTicketError


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
    with pytest.raises(StrongTicketError, match="fewer than two subfolders"):
        load_images(str(tmp_path))
    for label in ("cat", "dog"):
        (tmp_path / label).mkdir()
        for i in range(3):
            Image.fromarray(pictures[i, : 3 + i % 2]).save(tmp_path / label / f"{i}.png")
    with pytest.raises(StrongTicketError, match="differ in size"):
        load_images(str(tmp_path))
    (tmp_path / "cat" / "0.png").write_bytes(b"no picture")
    with pytest.raises(StrongTicketError, match="cannot read the image"):
        load_images(str(tmp_path), 4)


def test_a_hugging_face_dataset_of_images(tmp_path, pictures):
    features = datasets.Features(image=datasets.Image(), label=datasets.ClassLabel(names=["a", "b"]))
    rows = {"image": [Image.fromarray(p) for p in pictures], "label": [i % 2 for i in range(10)]}
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(tmp_path / "set")
    found = load_images(str(tmp_path / "set"))
    assert (len(found.train), len(found.valid), found.labels) == (8, 2, ("a", "b"))
    np.testing.assert_array_equal(found.train[:, 0], pictures[:8])


def test_labelled_texts(tmp_path):
    rows = [(f"text {i}", "ab"[i % 2]) for i in range(10)]
    (tmp_path / "t.csv").write_text("text,label\n" + "".join(f"{t},{label}\n" for t, label in rows))
    (tmp_path / "t.tsv").write_text("label\ttext\n" + "".join(f"{label}\t{t}\n" for t, label in rows))
    (tmp_path / "t.jsonl").write_text("".join(f'{{"text": "{t}", "label": "{n}"}}\n' for t, n in rows))
    for label in "ab":
        (tmp_path / "f" / label).mkdir(parents=True)
    for i, (text, label) in enumerate(rows):
        (tmp_path / "f" / label / f"{i}.txt").write_text(text)
    for name in ("t.csv", "t.tsv", "t.jsonl", "f"):
        found = load_texts(str(tmp_path / name))
        assert found.labels == ("a", "b")
        assert (len(found.train), len(found.valid)) == (8, 2)
        assert sorted(found.train + found.valid) == sorted((t, "ab".index(n)) for t, n in rows)
    datasets.Dataset.from_dict({"text": [t for t, _ in rows], "label": [n for _, n in rows]}).save_to_disk(
        tmp_path / "set"
    )
    assert len(load_texts(str(tmp_path / "set")).train) == 8
    (tmp_path / "t.csv").write_text("words,label\na,b\n")
    with pytest.raises(StrongTicketError, match=r"row 1 lacks text or label"):
        load_texts(str(tmp_path / "t.csv"))
    with pytest.raises(StrongTicketError, match="not a file, folder or known set"):
        load_texts(str(tmp_path / "nothing"))


def test_items_of_text_begin_with_a_token_and_are_padded():
    tokenizer = Characters("abc")
    items = TextItems([("ab", 1), ("abcabc", 0)], tokenizer, 5)
    assert items[0]["input_ids"].tolist() == [4, 0, 1, 3, 3]
    assert items[0]["attention_mask"].tolist() == [1, 1, 1, 0, 0]
    assert items[1]["input_ids"].tolist() == [4, 0, 1, 2, 0]
    assert int(items[0]["labels"]) == 1


def test_the_built_in_texts_are_balanced():
    found = load_texts("builtin")
    assert found.labels == ("code", "prose")
    for part in (found.train, found.valid):
        assert sum(label for _, label in part) == len(part) / 2
