"""Tickets of pretrained models."""

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

    def network(self, ticket: Ticket, *, threads: int | None = None, **options: Any) -> nn.Module:
        """options: faithful, base; see Source.network."""
        return Source(ticket.settings).network(ticket, threads=threads, **options)

    def describe(self, summary: Summary) -> Description:
        settings, metadata = summary.settings, summary.metadata
        base, layers = settings["base"], settings["layers"]
        facts = {
            "class": settings["class"],
            "whole": base is None,
            "base": base,
            "parts": settings["parts"],
            "layers": layers,
            **{name: metadata[name] for name in ("problems", "tolerance", "assignment", "errors")},
        }
        rows = [("network", f"{settings['class']} of pruned random matrices")]
        if base is None:
            rows.append(("whole", "every matrix is random and pruned; the ticket has no trained number"))
        else:
            rows.append(("partial", f"{', '.join(settings['parts'])}; the rest is the trained model {base}"))
        if layers is not None:
            rows.append(("layers", ", ".join(map(str, layers))))
        tolerance = f"to within {metadata['tolerance']:g} of each matrix's root mean square"
        rows.append(("subset sums", f"{metadata['problems']:,}, {tolerance}"))
        worst = sorted(metadata["errors"].items(), key=lambda item: -item[1][1])[:5]
        rows += [
            (f"error of {name}", f"{largest:.2g} at most, {relative:.2g} relative")
            for name, (largest, relative) in worst
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
            context=model.config.max_position_embeddings,
            stop_at=ends if isinstance(ends, list) else [ends],
            **{"temperature": 0.0} | options,
        )


KINDS = {KIND: PretrainedKind()}
