"""The valley of Figure 8 for two towers, one that sees images of digits and one that reads their names in words.

Both are trained to give an image and its digit's name the same direction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset

from strongticket.data.labelled import ImageItems, load_images
from strongticket.models.configs import transformers
from strongticket.reproduce import images
from strongticket.reproduce.rows import Row
from strongticket.reproduce.valley import valley_study
from strongticket.searching import SearchConfig, Task, logit_std, search
from strongticket.searching.tasks import stacked

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
_LOOKED_AT = 16  # pairs on which the logits are measured


def tokens(name: str) -> torch.Tensor:
    """Return the letters of a name as numbers, after a first token that stands for the whole.

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
    """A vision transformer and a BERT of the same size, whose first tokens are compared after a linear map each."""

    def __init__(self, config: SearchConfig, side: int) -> None:
        super().__init__()
        hf = transformers()
        shared: dict[str, Any] = dict(
            hidden_size=config.model.dim,
            intermediate_size=4 * config.model.dim,
            num_hidden_layers=config.model.layers,
            num_attention_heads=config.model.heads,
            hidden_act=config.model.activation,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        vision = hf.ViTConfig(**shared, image_size=side, patch_size=config.model.patch, num_channels=1)
        reader = hf.BertConfig(
            **shared, vocab_size=2 + len(_LETTERS), max_position_embeddings=_LENGTH, type_vocab_size=1
        )
        with torch.random.fork_rng(devices=[]):  # weights that are never used
            self.image = hf.ViTModel(vision, add_pooling_layer=False)
            self.text = hf.BertModel(reader, add_pooling_layer=False)
            self.image_map = nn.Linear(config.model.dim, config.model.dim, bias=False)
            self.text_map = nn.Linear(config.model.dim, config.model.dim, bias=False)

    def forward(self, pixel_values: torch.Tensor, input_ids: torch.Tensor) -> torch.Tensor:
        """Return the cosine of every image (rows) with every text (columns), times the sharpness."""
        seen = self.image_map(self.image(pixel_values=pixel_values).last_hidden_state[:, 0])
        read = self.text_map(self.text(**reader_inputs(input_ids)).last_hidden_state[:, 0])
        normalise = nn.functional.normalize
        return _SHARPNESS * normalise(seen, dim=-1) @ normalise(read, dim=-1).T


def reader_inputs(input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return what the reading tower takes."""
    return {"input_ids": input_ids, "attention_mask": (input_ids != _PADDING).long()}


def contrastive_loss(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Return −log of the probability that falls on texts (or images) of the same digit, mean of both directions."""
    cosines = model(batch["pixel_values"], batch["input_ids"])
    same = batch["digit"][:, None] == batch["digit"][None]
    total = torch.zeros((), device=cosines.device)
    for scores in (cosines, cosines.T):
        right = scores.masked_fill(~same, -torch.inf)
        total = total + (scores.logsumexp(-1) - right.logsumexp(-1)).mean()
    return total / 2


def retrieval(model: Any, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the fraction of the images whose nearest name, of all fifty, is a name of their digit."""
    names = torch.stack([tokens(name) for language in NAMES for name in language])
    nearest = model(batch["pixel_values"], names.to(batch["input_ids"].device)).argmax(-1)
    return {"accuracy": (nearest % 10 == batch["digit"]).double().mean()}


def digit_names(data: str = "builtin") -> Task:
    """Return the task; the held-out images are by other writers, the names are the same.

    Args:
        data: ten classes of grey images, as load_images takes it.
    """
    found = load_images(data)
    train = Pairs(ImageItems(found.train, found.train_labels, found.pixels), 0)
    valid = Pairs(ImageItems(found.valid, found.valid_labels, found.pixels), 1)
    sizes = {"image_size": found.train.shape[-1]}
    return Task(f"{found.name} and their names", train, valid, contrastive_loss, retrieval, sizes=sizes)


def make(config: SearchConfig) -> tuple[Task, nn.Module, Row]:
    """Return the task, the towers, and the deviation of the logits of both (root mean square) and of each."""
    task = digit_names(config.task.data)
    side = task.sizes["image_size"]
    logits: Row = dict.fromkeys(("logit_std", "logit_std_image", "logit_std_text"))
    if config.source.method != "dense":
        towers = TwoTowers(config, side)
        search(config.changed(steps=0), task=task, model=towers)  # attaches the scores and trains nothing
        batch = stacked(task.train, range(_LOOKED_AT), next(towers.parameters()).device)
        image = logit_std(towers.image, {"pixel_values": batch["pixel_values"]})
        text = logit_std(towers.text, reader_inputs(batch["input_ids"]))
        both = float(np.sqrt((image**2 + text**2) / 2))
        logits = {"logit_std": both, "logit_std_image": image, "logit_std_text": text}
    return task, TwoTowers(config, side), logits


# Without the residual factor, which would count the blocks of both towers together.
LAPTOP = images.LAPTOP.changed(layers=1, residual_scaling=False)
PAPER = images.PAPER.changed(residual_scaling=False)
STUDY = valley_study(
    "Does scaling queries and keys help tickets of two towers, one for images and one for text?",
    LAPTOP,
    PAPER,
    make,
)
