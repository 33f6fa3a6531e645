"""A language model that has learned something, with its tokenizer and texts."""

import numpy as np
import pytest
import torch
from tests.models.small_models import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

WORDS = ["<s>", "</s>", "<unk>", *(a + b for a in ("ba", "do", "ki", "lu", "me", "no") for b in "abcdef")]


def text(length: int, seed: int) -> str:
    """Which two words may follow depends on the last word and on the one before it."""
    rules, rng = np.random.default_rng(0), np.random.default_rng(seed)
    nexts = rules.integers(3, len(WORDS), (len(WORDS), 4, 2))
    found = [3, 4]
    for which in rng.integers(0, 2, length).tolist():
        found.append(int(nexts[found[-1], found[-2] % 4, which]))
    return " ".join(WORDS[word] for word in found)


@pytest.fixture(scope="session")
def learned(tmp_path_factory):
    """Folder: target/, a Llama trained for seconds; text.txt; unseen.txt."""
    folder = tmp_path_factory.mktemp("learned")
    for name, seed in (("text", 2), ("unseen", 3)):
        (folder / f"{name}.txt").write_text(text(6000, seed))
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    config = transformers.LlamaConfig(
        vocab_size=len(WORDS), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=32, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = transformers.LlamaForCausalLM(config)
        ids = torch.tensor(tokenizer(text(30_000, 1)).input_ids).split(32)[:-1]
        optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
        for step in range(120):
            batch = torch.stack([ids[(16 * step + i) % len(ids)] for i in range(16)])
            model(batch, labels=batch).loss.backward()
            optimiser.step()
            optimiser.zero_grad()
    model.save_pretrained(folder / "target")
    tokenizer.save_pretrained(folder / "target")
    return folder
