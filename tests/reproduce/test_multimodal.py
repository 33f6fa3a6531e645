"""Digits and their names: pairs, the contrastive loss, the towers and their study."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from tests.reproduce.runs import read_csv, reproduce
from tests.reproduce.tiny import TINY

from strongticket.reproduce.multimodal import (
    NAMES,
    TwoTowers,
    contrastive_loss,
    digit_names,
    retrieval,
    tokens,
)


@pytest.fixture(scope="module")
def task():
    return digit_names()


def test_every_name_has_ten_digits_and_its_own_tokens():
    assert all(len(names) == 10 for names in NAMES)
    different = {name for names in NAMES for name in names}
    assert len({tuple(tokens(name).tolist()) for name in different}) == len(different)


def test_an_image_is_paired_with_a_name_of_its_digit_in_any_language(task):
    seen = np.zeros((10, len(NAMES)), dtype=int)
    for index in range(len(task.train)):
        digit, language = int(task.train.items.labels[index]), task.train.languages[index]
        seen[digit, language] += 1
    assert seen.min() > 0
    item = task.train[3]
    assert item["input_ids"].tolist() == tokens(NAMES[task.train.languages[3]][int(item["digit"])]).tolist()


def test_the_loss_is_that_of_plain_sums():
    generator = torch.Generator().manual_seed(0)
    cosines, digits = torch.randn(4, 4, generator=generator), torch.tensor([3, 5, 3, 7])
    batch = {"pixel_values": None, "input_ids": None, "digit": digits}
    total = 0.0
    for table in (cosines.tolist(), cosines.T.tolist()):
        for i, row in enumerate(table):
            right = sum(math.exp(row[j]) for j in range(4) if digits[i] == digits[j])
            total -= math.log(right / sum(map(math.exp, row))) / 4
    assert float(contrastive_loss(lambda *_: cosines, batch)) == pytest.approx(total / 2, rel=1e-5)


def test_the_nearest_name_may_be_in_any_language():
    nearest = torch.zeros(3, 10 * len(NAMES))
    nearest[0, 4], nearest[1, 27], nearest[2, 13] = 1, 1, 1
    batch = {"pixel_values": None, "input_ids": torch.zeros(1), "digit": torch.tensor([4, 7, 8])}
    assert float(retrieval(lambda *_: nearest, batch)["accuracy"]) == pytest.approx(2 / 3)


def test_the_reader_does_not_see_padding(task):
    towers = TwoTowers(TINY["multimodal"].config, 8).eval()
    batch = task.train[0]
    short, image = tokens("six")[None], batch["pixel_values"][None]
    with torch.no_grad():
        whole = towers(image, short)
        cut = towers(image, short[:, :4])
    assert float(whole) == pytest.approx(float(cut), rel=1e-4)


def test_both_towers_logits_grow_with_the_scale(tmp_path):
    reproduce(tmp_path, "multimodal")
    rows = read_csv(tmp_path / "multimodal" / "losses.csv")
    assert [row["scale"] for row in rows] == ["1.0", "2.0", "4.0", ""]
    assert rows[-1]["logit_std"] == ""
    for tower in ("image", "text"):
        stds = [float(row[f"logit_std_{tower}"]) for row in rows if row["scale"]]
        ratios = [after / before for before, after in pairwise(stds)]
        assert ratios == pytest.approx([4] * len(ratios), rel=0.1)  # both factors of a logit are doubled
