"""Validation loss of a causal language model, and what it means in bits per byte."""

from __future__ import annotations

import math

import torch
from torch import nn

from strongticket.data.windows import Windows

_TOKENS = 1 << 13  # in a forward pass


def validation_loss(model: nn.Module, windows: Windows) -> float:
    """Mean cross-entropy in nats per predicted token, over all windows. Equal weights give equal bits.

    model: a causal language model of transformers
    windows: the validation text
    """
    device = next(model.parameters()).device
    batch = max(1, _TOKENS // windows.context)
    was_training = model.training
    model.eval()
    total = 0.0
    with torch.no_grad():
        for start in range(0, len(windows), batch):
            rows = [windows[i]["input_ids"] for i in range(start, min(start + batch, len(windows)))]
            tokens = torch.stack(rows).to(device)
            total += float(model(input_ids=tokens, labels=tokens).loss) * len(rows)
    model.train(was_training)
    return total / len(windows)


def bits_per_byte(loss: float, bytes_per_token: float) -> float:
    """A loss in nats per token as bits per byte of UTF-8 text."""
    return loss / math.log(2) / bytes_per_token
