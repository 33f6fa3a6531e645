"""What `strongticket compare` says of two transformers models, whatever the kind of ticket."""

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from torch import nn

from strongticket.data.models import tokenizer_files
from strongticket.data.tokenizers import FromFiles
from strongticket.errors import StrongTicketError
from strongticket.pretrained._certify import LayerCertificate
from strongticket.pretrained._compare import Comparison, compare
from strongticket.pretrained._generate import generate
from strongticket.pretrained.inputs import SEQUENCES, batches, task
from strongticket.ticket import CompareOptions, TicketComparison

_TOKENS = 40  # of a continuation


def compare_models(
    model: str,
    target: nn.Module,
    source: nn.Module,
    options: CompareOptions,
    certificates: tuple[LayerCertificate, ...] = (),
) -> TicketComparison:
    """Run both on the same inputs.

    model: the target's folder or hub name, which has its tokenizer
    target, source: the trained model and the ticket's network, of the same class
    options: what to run them on
    certificates: of attention layers, to be reported with the result
    """
    files = tokenizer_files(model) if options.data or options.prompts else {}
    tokenizer = FromFiles(files) if files else None
    found = compare(
        target,
        source,
        batches(
            target,
            options.data,
            tokenizer.inner if tokenizer else None,
            seed=options.seed,
            sequences=SEQUENCES if options.sequences is None else options.sequences,
        ),
        certificates=certificates,
        progress=options.progress,
    )
    facts = {"target": model, "data": None if options.data is None else str(options.data)} | asdict(found)
    facts["target_perplexity"] = _perplexity(found.target_loss)
    facts["source_perplexity"] = _perplexity(found.source_loss)
    if options.prompts:
        facts["answers"] = [_continued(target, source, tokenizer, prompt) for prompt in options.prompts]
    return TicketComparison(facts, tuple(_rows(facts)), tuple(_layers(found)))


def _perplexity(loss: float | None) -> float | None:
    """None as well for a loss whose exponential no float can hold."""
    return None if loss is None or not loss < 700 else math.exp(loss)


def _continued(target: Any, source: Any, tokenizer: FromFiles | None, prompt: str) -> dict[str, str]:
    """The likeliest continuation of the prompt by both."""
    if tokenizer is None or task(target) != "next-token":
        raise StrongTicketError(
            f"prompts are continued by language models with a tokenizer, and this is a {type(target).__name__}"
            + (" without one" if tokenizer is None else ""),
            hint="Leave them out.",
        )
    target_text, source_text = (
        "".join(generate(network, tokenizer, prompt, tokens=_TOKENS)) for network in (target, source)
    )
    return {"prompt": prompt, "target": target_text, "ticket": source_text}


def _rows(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("loss", "perplexity"):
        if facts[f"target_{name}"] is not None and facts[f"source_{name}"] is not None:
            ticket, model = facts[f"source_{name}"], facts[f"target_{name}"]
            yield name, f"{ticket:.4f} of the ticket, {model:.4f} of the model"
    if facts["divergence"] is not None:
        yield "KL divergence", f"{facts['divergence']:.3g} nats at {facts['tokens']:,} positions"
        yield "same likeliest answer", f"{facts['agreement']:.2%}"
    cosine = f"{facts['cosine_mean']:.6f}, at least {facts['cosine_min']:.6f}"
    yield "cosine of mean hidden states", cosine
    for answer in facts.get("answers", ()):
        yield "prompt", answer["prompt"]
        yield "the model continues", answer["target"]
        yield "the ticket continues", answer["ticket"]


def _layers(found: Comparison) -> Iterator[tuple[str, ...]]:
    certified = {certificate.layer: certificate for certificate in found.certificates}
    yield "after layer", "relative error", *(["attention certified to"] if certified else [])
    for number, error in enumerate(found.layers):
        bound = [_certified(certified[number])] if number in certified else [""] * bool(certified)
        yield str(number), f"{error:.2e}", *bound


def _certified(layer: LayerCertificate) -> str:
    relative = f", {layer.bound / layer.output:.2g} of its output" if layer.output else ""
    return f"{layer.bound:.3g}{relative}, for ‖x‖ ≤ {layer.radius:.3g} in {layer.arithmetic}"
