"""Tickets of trained models."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from strongticket.data._generate import generate
from strongticket.data.tokenizers import FromFiles
from strongticket.errors import StrongTicketError
from strongticket.pretrained.source import Source
from strongticket.ticket import Description, Summary, Ticket

KIND = "pretrained"


class PretrainedKind:
    def shapes(self, settings: dict[str, Any]) -> dict[str, tuple[int, ...]]:
        return Source(settings).shapes()

    def network(
        self,
        ticket: Ticket,
        *,
        threads: int | None = None,
        module: nn.Module | None = None,
        **options: Any,
    ) -> nn.Module:
        """options: faithful, base; see Source.network."""
        return Source(ticket.settings).network(ticket, module=module, threads=threads, **options)

    def describe(self, summary: Summary) -> Description:
        settings, metadata = summary.settings, summary.metadata
        source = Source(settings)
        numbers = sum(tensor.size for tensor in source.tensors.values())
        base, errors = settings["base"], metadata["errors"]
        network = summary.file_bytes - metadata.get("tokenizer_bytes", 0)
        facts = {
            "class": settings["class"],
            "whole": base is None,
            "base": base,
            "numbers": numbers,
            "bits_per_weight": 8 * network / numbers,
            **{name: metadata[name] for name in ("tolerance", "assignment", "relative_error", "errors")},
            "unreached": metadata.get("unreached", 0),
            "calibrated_on": metadata.get("calibrated_on"),
        }
        rows = [("network", f"{settings['class']}, {numbers:,} numbers of it as pruned random factors")]
        if base is None:
            rows.append(("whole", "every tensor is random and pruned; the ticket has no trained number"))
        else:
            rows.append(("partial", f"{len(source.tensors)} tensors; the rest is the trained model {base}"))
        rows.append(("bits per weight", f"{facts['bits_per_weight']:.2f}, tokenizer aside"))
        rows.append(("relative error", f"{metadata['relative_error']:.2g} (root mean square)"))
        if text := facts["calibrated_on"]:
            rows.append(("calibrated", f"on {text}: errors of linear layers cancel on inputs like its own"))
        if unreached := facts["unreached"]:
            rows.append(
                ("out of reach", f"{unreached:,} entries, larger than all that their units add up to")
            )
        worst = sorted(errors.items(), key=lambda item: -item[1][1])[:5]
        rows += [
            ("" if i else "largest errors", f"{name}: {largest:.2g} at most, {relative:.2g} relative")
            for i, (name, (largest, relative)) in enumerate(worst)
        ]
        return Description(tuple(rows), facts)

    def generate(
        self,
        ticket: Ticket,
        prompt: str,
        *,
        base: str | None = None,
        faithful: bool = False,
        **options: Any,
    ) -> Iterator[str]:
        """base: the trained model of a partial ticket; faithful: run the random matrices themselves."""
        files = ticket.metadata.get("tokenizer", {})
        model: Any = ticket.network(base=base, faithful=faithful)
        if not files or not hasattr(model, "generate"):
            raise StrongTicketError(
                f"a ticket of a {type(model).__name__}"
                + (" without a tokenizer" if hasattr(model, "generate") else "")
                + " cannot generate text",
                hint="Build one from the folder of a language model.",
            )
        ends = model.config.eos_token_id
        return generate(
            model,
            FromFiles(files),
            prompt,
            context=getattr(model.config.get_text_config(), "max_position_embeddings", None) or 1 << 20,
            stop_at=ends if isinstance(ends, list) else [ends],
            **{"temperature": 0.0} | options,
        )


KINDS = {KIND: PretrainedKind()}
