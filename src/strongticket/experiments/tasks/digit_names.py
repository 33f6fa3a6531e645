"""Images of digits beside their names in words: a task for two towers, one that sees and one that reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset

from strongticket.data.configs import transformers
from strongticket.data.labelled import ImageItems, load_images
from strongticket.searching import SearchConfig, Task

# The names in five languages: the reader has to learn that fifty words mean ten digits.
NAMES = (
    ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    ("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"),
    ("zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"),
    ("cero", "uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve"),
    ("noll", "ett", "två", "tre", "fyra", "fem", "sex", "sju", "åtta", "nio"),
)
_LETTERS = sorted({letter for names in NAMES for name in names for letter in name})
_PADDING, _START = 0, 1  # letters follow
_LENGTH = 1 + max(len(name) for names in NAMES for name in names)
_SHARPNESS = 10.0  # of the softmax over cosines; CLIP trains it, here only the mask is trained


def tokens(name: str) -> torch.Tensor:
    """The letters of a name as numbers, after a first token that stands for the whole.

    >>> tokens("one").shape
    torch.Size([7])
    """
    found = [_START, *(2 + _LETTERS.index(letter) for letter in name)]
    return torch.tensor(found + [_PADDING] * (_LENGTH - len(found)))


class Pairs(Dataset[dict[str, torch.Tensor]]):
    """An image, the name of its digit in one of the languages, and the digit."""

    def __init__(self, items: ImageItems, seed: int) -> None:
        self.items = items
        # By chance: the order of the digits is regular, so that a fixed turn would tie digits to languages.
        self.languages = np.random.default_rng(seed).integers(len(NAMES), size=len(items))

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        item = self.items[index]
        name = NAMES[self.languages[index]][int(item["labels"])]
        return {"pixel_values": item["pixel_values"], "input_ids": tokens(name), "digit": item["labels"]}


class TwoTowers(nn.Module):
    """A vision transformer and a BERT whose first tokens are compared after a linear map each.

    config: width, heads, blocks and patches, the same in both towers
    side: of the images in pixels
    """

    def __init__(self, config: SearchConfig, side: int) -> None:
        super().__init__()
        hf = transformers()
        shared: dict[str, Any] = dict(
            hidden_size=config.dim,
            intermediate_size=4 * config.dim,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            hidden_act=config.activation,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        vision = hf.ViTConfig(**shared, image_size=side, patch_size=config.patch, num_channels=1)
        reader = hf.BertConfig(
            **shared, vocab_size=2 + len(_LETTERS), max_position_embeddings=_LENGTH, type_vocab_size=1
        )
        with torch.random.fork_rng(devices=[]):  # weights that are never used
            self.image = hf.ViTModel(vision, add_pooling_layer=False)
            self.text = hf.BertModel(reader, add_pooling_layer=False)
            self.image_map = nn.Linear(config.dim, config.dim, bias=False)
            self.text_map = nn.Linear(config.dim, config.dim, bias=False)

    def forward(self, pixel_values: torch.Tensor, input_ids: torch.Tensor) -> torch.Tensor:
        """Return the cosine of every image (rows) with every text (columns), times the sharpness."""
        seen = self.image_map(self.image(pixel_values=pixel_values).last_hidden_state[:, 0])
        read = self.text_map(self.text(**reader_inputs(input_ids)).last_hidden_state[:, 0])
        normalise = nn.functional.normalize
        return _SHARPNESS * normalise(seen, dim=-1) @ normalise(read, dim=-1).T


def reader_inputs(input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """What the reading tower takes."""
    return {"input_ids": input_ids, "attention_mask": (input_ids != _PADDING).long()}


def contrastive_loss(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Mean over both directions of −log of the probability that falls on texts (or images) of the same digit."""
    cosines = model(batch["pixel_values"], batch["input_ids"])
    same = batch["digit"][:, None] == batch["digit"][None]
    total = torch.zeros((), device=cosines.device)
    for scores in (cosines, cosines.T):
        right = scores.masked_fill(~same, -torch.inf)
        total = total + (scores.logsumexp(-1) - right.logsumexp(-1)).mean()
    return total / 2


def retrieval(model: Any, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Share of the images whose nearest name, of all fifty, is a name of their digit."""
    names = torch.stack([tokens(name) for language in NAMES for name in language])
    nearest = model(batch["pixel_values"], names.to(batch["input_ids"].device)).argmax(-1)
    return {"accuracy": (nearest % 10 == batch["digit"]).double().mean()}


def digit_names(data: str = "builtin") -> Task:
    """The task. The held-out images are by other writers; the names are the same.

    data: ten classes of grey images, as load_images takes it
    """
    found = load_images(data)
    train, valid = (
        Pairs(ImageItems(images, labels, found.pixels), seed)
        for seed, (images, labels) in enumerate(
            ((found.train, found.train_labels), (found.valid, found.valid_labels))
        )
    )
    return Task(
        f"{found.name} and their names",
        train,
        valid,
        contrastive_loss,
        retrieval,
        sizes={"image_size": found.train.shape[-1]},
    )
