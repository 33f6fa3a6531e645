"""Built tickets in JavaScript: every number to the library's bits, their networks and tokenizers."""

import numpy as np
import pytest
import torch
from tests.web.compare import GALLERY, unequal_bits
from tests.web.samples import MODELS, small_model
from tests.web.test_web_networks import ROUNDING, TOKENS, relative_error

import strongticket
from strongticket import choice
from strongticket.models.tokenizers import FromFiles
from strongticket.ticket import Ticket

TEXTS = (
    "Once upon a time, there was a little girl named Lily.\nShe said: \"It's 12 o'clock!\"",
    "  two  spaces, größe, naïve 🦊 and 漢字 ",
    "a <s> inside, and </s> at the end</s>",
    "",
)


@pytest.fixture(scope="module")
def built():
    """A function: name -> ticket of the small model of that name."""
    found: dict[str, Ticket] = {}

    def make(name: str) -> Ticket:
        if name not in found:
            found[name] = strongticket.build(small_model(name), bits=12)  # little of it for each number
        return found[name]

    return make


@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_equal_to_the_last_bit_and_logits_to_rounding(javascript, built, name):
    ticket = built(name)
    file, network = ticket.to_bytes(), ticket.network()
    numbers = sum(parameter.numel() for parameter in network.parameters())
    assert unequal_bits(javascript, file, ticket) == (numbers, 0)
    if name == "vit":
        images = torch.rand((2, 2, 12, 12), generator=torch.Generator().manual_seed(0))
        job = {"do": "images", "file": file, "images": images.reshape(2, -1).tolist()}
        inputs = {"pixel_values": images}
    else:
        job = {"do": "language", "file": file, "tokens": TOKENS}
        inputs = {"input_ids": torch.tensor([TOKENS])}
    with torch.no_grad():
        expected = network(**inputs).logits.squeeze(0)
    assert relative_error(javascript(job)[0], expected) < ROUNDING


@pytest.fixture(scope="module")
def stories():
    return Ticket.load(GALLERY["stories-4bit"])


def test_tokens_are_the_librarys(javascript, stories):
    tokenizer = FromFiles(stories.metadata["tokenizer"])
    file = Ticket(1, "model", stories.settings, {}, {}, metadata=stories.metadata).to_bytes()
    found = javascript(*({"do": "tokens", "file": file, "text": text} for text in TEXTS))
    for text, each in zip(TEXTS, found, strict=True):
        tokens = [int(token) for token in tokenizer.encode(text)]
        assert each == {"tokens": tokens, "text": tokenizer.decode(tokens)}


def test_greedy_text_of_the_stories_is_the_librarys(node, stories):
    expected = "".join(stories.generate("Once upon a time", tokens=60, temperature=0))
    job = {"do": "write", "prompt": "Once upon a time", "count": 60}
    (found,) = node(job | {"file": GALLERY["stories-4bit"].read_bytes()})
    assert found == expected
    assert "little girl" in found


def test_a_text_ends_where_the_network_ends_it(node, built):
    ticket = built("gpt2")
    job = {"do": "continue", "prompt": [3], "count": 20}
    (tokens,) = node(job | {"file": ticket.to_bytes()})
    end = tokens[10]
    settings = ticket.settings | {"config": ticket.settings["config"] | {"eos_token_id": [50_000, end]}}
    ended = Ticket(ticket.seed, "model", settings, {}, {}, choices=ticket.choices)
    assert node(job | {"file": ended.to_bytes()}) == [tokens[: tokens.index(end)]]


def test_built_tickets_that_do_not_fit_are_refused(node, built):
    good = built("llama")
    jobs: list[dict] = []
    expected: list[str] = []

    def expect(answer, choices=good.choices, **changes):
        ticket = Ticket(good.seed, "model", good.settings | changes, {}, {}, choices=choices)
        jobs.append({"do": "refuses_network", "file": ticket.to_bytes()})
        expected.append(answer)

    name = "model.norm.weight"
    expect("accepted")
    expect("the ticket is partial", base="0" * 32)
    expect("not by subset sums", by="subset", per_row=12)
    expect("not by subset sums", by="subset", per_row=12, attention="products")
    expect("does not run a LlamaModel", **{"class": "LlamaModel"})
    expect("does not run a LlamaForCausalLM", options={"more": 1})
    expect("does not run a LlamaForCausalLM", library=None)
    expect("settings must have exactly", more=1)
    expect("settings must have exactly", options=None)
    expect('networks of type "bert"', config={"model_type": "bert"})
    expect("the network has shape", config=good.settings["config"] | {"hidden_size": 18})
    expect(f'tensor "{name}"', choices={each: good.choices[each] for each in good.choices if each != name})
    expect(
        'tensor "extra"',
        choices=good.choices | {"extra": choice.encode(np.ones(3, np.float32), 1, "extra", 0.1)},
    )
    answers = node(*jobs)
    assert [answer for answer, part in zip(answers, expected, strict=True) if part not in answer] == []
