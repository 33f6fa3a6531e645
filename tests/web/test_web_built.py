"""Built tickets in JavaScript: their factors multiplied to the library's bits, their networks and tokenizers."""

import numpy as np
import pytest
import torch
from tests.pretrained.small_models import HF_MODELS, hf_model, trained, transformers
from tests.web.compare import GALLERY, unequal_folded_bits
from tests.web.test_web_networks import ROUNDING, relative_error

from strongticket.models import batches
from strongticket.models.tokenizers import FromFiles
from strongticket.pretrained import build_ticket
from strongticket.pretrained.source import Source
from strongticket.ticket import Ticket

TEXTS = (
    "Once upon a time, there was a little girl named Lily.\nShe said: \"It's 12 o'clock!\"",
    "  two  spaces, größe, naïve 🦊 and 漢字 ",
    "a <s> inside, and </s> at the end</s>",
    "",
)
MODELS = ("llama", "llama-bias", "llama-tied", "mistral", "qwen2", "gpt2", "gpt2-relu", "vit")


@pytest.fixture(scope="module")
def built():
    """A function: name -> ticket of the small model of that name, made roughly."""
    found: dict[str, Ticket] = {}

    def make(name: str) -> Ticket:
        if name not in found:
            class_name, config = HF_MODELS[name]
            made_by = getattr(transformers, class_name)
            model = trained(made_by(made_by.config_class(**config)))
            found[name] = build_ticket(model.eval(), units=4.25, workers=1)
        return found[name]

    return make


@pytest.mark.parametrize("name", MODELS)
def test_folded_tensors_are_equal_to_the_last_bit_and_logits_to_rounding(node, built, name):
    ticket = built(name)
    file, network = ticket.to_bytes(), ticket.network()
    compared, differ = unequal_folded_bits(node, file, ticket)
    assert (compared, differ) == (sum(each.numel() for each in network.parameters()), 0)
    if name == "vit":
        images = torch.rand((2, 2, 12, 12), generator=torch.Generator().manual_seed(0))
        job = {"do": "images", "file": file, "images": images.reshape(2, -1).tolist()}
        inputs = {"pixel_values": images}
    else:
        tokens = [3, 0, 7, 7, 1, 9, 4, 2]
        job = {"do": "language", "file": file, "tokens": tokens}
        inputs = {"input_ids": torch.tensor([tokens])}
    with torch.no_grad():
        expected = network(**inputs).logits.squeeze(0)
    assert relative_error(node(job)[0], expected) < ROUNDING


def test_several_pieces_and_the_papers_source(node):
    """Rows that their pieces do not divide, a tensor of three axes, odd sizes, vectors of the paper's source."""
    model = trained(torch.nn.Sequential(torch.nn.Linear(37, 61), torch.nn.Conv1d(61, 5, 3)))
    for options, pieces in (
        ({"units": 2.25, "piece_problems": 400}, 3),
        ({"units": 5, "assignment": "paper"}, 1),
    ):
        ticket = build_ticket(model, workers=1, tolerance=0.3, **options)
        assert max(len(tensor.pieces) for tensor in Source(ticket.settings).tensors.values()) == pieces
        compared, differ = unequal_folded_bits(node, ticket.to_bytes(), ticket)
        assert (compared, differ) == (sum(parameter.numel() for parameter in model.parameters()), 0)


def test_rows_apart_fold_to_the_same_bits(node):
    model = trained(torch.nn.Sequential(torch.nn.Linear(90, 61), torch.nn.Linear(61, 40)))
    with torch.no_grad():
        for row, column in ((0, 3), (17, 5), (18, 60)):  # at the edge, and side by side
            model[1].weight[row, column] = 40.0
    ticket = build_ticket(model, workers=1, units=8)
    assert [layout.get("apart") for layout in ticket.settings["layouts"]] == [None, [0, 17, 18]]
    compared, differ = unequal_folded_bits(node, ticket.to_bytes(), ticket)
    assert (compared, differ) == (sum(parameter.numel() for parameter in model.parameters()), 0)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_calibrated_weights_are_cut_along_their_outputs(node, name, tmp_path, monkeypatch):
    model = hf_model(name)
    read = batches(model, None, None, sequences=2)
    monkeypatch.setattr("strongticket.pretrained.build.batches", lambda *_: read)
    ticket = build_ticket(model, units=4.25, workers=1, calibrate=tmp_path / "text.txt")
    assert [layout.get("axis") for layout in ticket.settings["layouts"]] == [None, 1 if name == "gpt2" else 0]
    compared, differ = unequal_folded_bits(node, ticket.to_bytes(), ticket)
    assert (compared, differ) == (sum(parameter.numel() for parameter in model.parameters()), 0)


@pytest.fixture(scope="module")
def stories():
    return Ticket.load(GALLERY["stories"])


def test_tokens_are_the_librarys(javascript, stories):
    tokenizer = FromFiles(stories.metadata["tokenizer"])
    file = small_with_tokenizer(stories)
    found = javascript(*({"do": "tokens", "file": file, "text": text} for text in TEXTS))
    for text, each in zip(TEXTS, found, strict=True):
        tokens = [int(token) for token in tokenizer.encode(text)]
        assert each == {"tokens": tokens, "text": tokenizer.decode(tokens)}


def small_with_tokenizer(stories: Ticket) -> bytes:
    """A ticket of few weights with the tokenizer of the stories: quick to read."""
    few = {name: mask for name, mask in stories.masks.items() if "norm" in name}
    laws = {name: stories.laws[name] for name in few}
    return Ticket(1, "pretrained", stories.settings, laws, few, metadata=stories.metadata).to_bytes()


def test_greedy_text_of_the_stories_is_the_librarys(node, stories):
    expected = "".join(stories.generate("Once upon a time", tokens=60, temperature=0))
    job = {"do": "write", "prompt": "Once upon a time", "count": 60}
    (found,) = node(job | {"file": GALLERY["stories"].read_bytes()})
    assert found == expected
    assert "little girl" in found


def test_a_text_ends_where_the_network_ends_it(node, built):
    ticket = built("gpt2")
    job = {"do": "continue", "prompt": [3], "count": 20}
    (tokens,) = node(job | {"file": ticket.to_bytes()})
    end = tokens[10]
    settings = ticket.settings | {"config": ticket.settings["config"] | {"eos_token_id": [50_000, end]}}
    ended = Ticket(ticket.seed, ticket.kind, settings, ticket.laws, ticket.masks)
    assert node(job | {"file": ended.to_bytes()}) == [tokens[: tokens.index(end)]]


def test_built_tickets_that_do_not_fit_are_refused(node, built):
    good = built("llama")
    jobs: list[dict] = []
    expected: list[str] = []

    def expect(answer, masks=good.masks, **changes):
        laws = {name: good.laws[name] for name in masks}
        ticket = Ticket(good.seed, "pretrained", good.settings | changes, laws, masks)
        jobs.append({"do": "refuses_network", "file": ticket.to_bytes()})
        expected.append(answer)

    layout, tensors = good.settings["layouts"][0], good.settings["tensors"]
    name = "model.norm.weight"
    expect("accepted")
    expect("the ticket is partial", base="0" * 32)
    expect("attention made of products", attention="products")
    expect("does not run a LlamaModel", **{"class": "LlamaModel"})
    expect("does not run a LlamaForCausalLM", library=None)
    expect("settings must have exactly", more=1)
    for change in (
        {"units": 0}, {"share": 4}, {"more": 1}, {"problems": 1.5}, {"paper": 1},
        {"apart": 1}, {"apart": [-1]}, {"apart": [1, 1]}, {"apart": [1.5]}, {"apart": [0], "paper": True},
    ):  # fmt: skip
        expect("layout of the settings", layouts=[layout | change])
    expect("is to be apart", layouts=[layout | {"apart": [2**40]}])
    expect("layout of the settings", layouts=[None])
    expect("layouts must be a list", layouts=None)
    for wrong in (None, [7, [12]], [0, [-1]], [0, "12"], [0, [1.5]]):
        expect("must have a layout and positive sizes", tensors=tensors | {name: wrong})
    expect("would need", tensors=tensors | {name: [0, [2**40, 2**40]]})
    expect("must have shape", tensors=tensors | {name: [0, [13]]})
    without = {each: mask for each, mask in good.masks.items() if not each.startswith(name)}
    expect(f'tensor "{name}.0.left"', masks=without)
    expect(f'tensor "{name}.0.left"', tensors={each: tensors[each] for each in tensors if each != name})
    expect("the network has shape", config=good.settings["config"] | {"hidden_size": 18})
    answers = node(*jobs)
    assert [answer for answer, part in zip(answers, expected, strict=True) if part not in answer] == []


@pytest.mark.parametrize("name", GALLERY)
def test_corrupted_gallery_files_are_refused(node, name):
    whole, rng = GALLERY[name].read_bytes(), np.random.default_rng(0)
    places = rng.integers(0, len(whole), 40)
    flipped = [whole[:at] + bytes([whole[at] ^ 1 << int(at) % 8]) + whole[at + 1 :] for at in places]
    (answers,) = node({"do": "refuses", "files": [*flipped, whole[:-1], whole[: len(whole) // 2]]})
    assert {answer.split(":")[0] for answer in answers} == {"refused"}
