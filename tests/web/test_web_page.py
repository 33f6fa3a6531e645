"""The page of a ticket in a real browser: it runs the ticket, and everything on it can be used."""

import json
import re
from base64 import b64encode
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.web.compare import GALLERY
from tests.web.samples import KNOWN, image_ticket, language_ticket, small_model

import strongticket
from strongticket.choice.source import many_weights
from strongticket.models.tokenizers import Characters
from strongticket.report.ticket_page import write_ticket_page
from strongticket.seeds import Uniform, draw
from strongticket.ticket import Ticket

IMAGES = [np.random.default_rng(digit).integers(0, 256, (8, 8), np.uint8) for digit in range(10)]
SAMPLES = [{"pixels": b64encode(grey.tobytes()).decode(), "label": i} for i, grey in enumerate(IMAGES)]
ODD = [
    {"pixels": "AAAA", "label": 1},
    {"pixels": "?", "label": 2},
    {"label": 3},
    7,
    SAMPLES[0] | {"label": 10},
]
LANGUAGE = language_ticket()
IMAGE = replace(image_ticket(), metadata={"samples": SAMPLES + ODD})
RELU = Ticket.load(KNOWN)  # of a kind that is not run
SHOWN = "[...document.querySelectorAll('section')].filter(s => !s.hidden).map(s => s.id)"
READY = "document.documentElement.dataset.ready === 'yes'"


def value(id_: str) -> str:
    return f"document.getElementById('{id_}').value"


def text(id_: str) -> str:
    return f"document.getElementById('{id_}').textContent"


def click(id_: str) -> str:
    return f"document.getElementById('{id_}').click()"


def enter(id_: str, content: object) -> str:
    """Put a value into a control as a person does: the page hears of it."""
    return (
        f"(e => {{ e.value = {content!r}; e.dispatchEvent(new Event('input', {{bubbles: true}})) }})"
        f"(document.getElementById('{id_}'))"
    )


@pytest.fixture
def show(browser, tmp_path):
    """A function: show the page of a ticket and wait for it. Nothing may go wrong on it."""

    def shown(ticket: Ticket, seconds: float = 30, **options):
        page = write_ticket_page(ticket.save(tmp_path / "a.ticket"), tmp_path / "a.html")
        browser.open(page, **options)
        browser.wait(READY, seconds)
        return page

    yield shown
    assert browser.problems == []


def press(browser, id_: str, key: str, **options) -> None:
    """Press a key on an element."""
    event = json.dumps({"key": key} | options)
    browser.evaluate(f"document.getElementById('{id_}').dispatchEvent(new KeyboardEvent('keydown', {event}))")


@pytest.mark.parametrize(
    ("ticket", "sections"),
    [
        (LANGUAGE, ["write", "look", "flip", "finding"]),
        (IMAGE, ["draw", "look", "flip", "finding"]),
        (RELU, ["look", "finding", "width"]),
    ],
    ids=["language", "images", "relu"],
)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True), (320, False)])
def test_pages_open_offline_without_errors_or_sideways_scroll(browser, show, ticket, sections, width, dark):
    page = show(ticket, width=width, dark=dark)
    assert [url for url in browser.requests if not url.startswith("data:")] == [page.as_uri()]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert page.stat().st_size < 250_000
    assert browser.evaluate(SHOWN) == sections
    # Whatever takes input has a name that a screen reader says.
    unnamed = (
        "[...document.querySelectorAll('input,select,textarea,button,canvas')]"
        ".filter(e => !e.labels?.length && !e.textContent.trim() && !e.ariaLabel).map(e => e.id)"
    )
    assert browser.evaluate(unnamed) == []


def test_the_page_says_what_the_ticket_is(browser, show):
    show(LANGUAGE)
    weights = sum(mask.size for mask in LANGUAGE.masks.values())
    assert f"drawn {weights:,} random weights from the seed 3" in browser.evaluate(text("lead"))
    assert f"{len(LANGUAGE.masks)} of {len(LANGUAGE.masks)}" in browser.evaluate(text("facts"))


def test_greedy_text_on_the_page_is_the_librarys(browser, show):
    show(LANGUAGE)
    browser.evaluate(enter("temperature", "0"))
    browser.evaluate(enter("prompt", "The lazy"))
    browser.evaluate(click("write-start"))
    browser.wait(f"{text('written')}.length > 40")
    browser.evaluate(click("write-start"))
    browser.wait(f"{text('write-note')}.includes('tokens')")
    expected = "The lazy" + "".join(LANGUAGE.generate("The lazy", tokens=32, temperature=0))
    assert browser.evaluate(text("written"))[: len(expected)] == expected


def test_the_first_sample_and_beginning_are_made_of_letters_the_network_knows(browser, show):
    show(LANGUAGE)
    assert browser.evaluate(value("sample")).startswith("The ")
    assert "wrote this sample itself" in browser.evaluate(text("flip-caption"))
    show(language_ticket(tokenizer=Characters.of("acgt")))
    assert browser.evaluate(value("prompt")) == "a"
    assert set(browser.evaluate(value("sample"))) <= set("acgt")


def test_a_letter_the_network_does_not_know_is_named(browser, show):
    show(LANGUAGE)
    browser.evaluate(enter("prompt", "größe"))
    browser.evaluate(click("write-start"))
    browser.wait(f"{text('write-note')}.includes('ö')")
    assert browser.evaluate(text("write-start")) == "Write"


def test_flipped_bits_change_the_loss_and_restoring_brings_it_back(browser, show):
    show(LANGUAGE)
    before = browser.evaluate(value("loss"))
    assert re.fullmatch(r"\d+\.\d{3} nats", before)
    browser.evaluate(enter("flipped", 9))
    browser.wait(f"{value('loss')} !== '{before}'")
    assert browser.evaluate(value("flipped-shown")) == "50 %"
    browser.evaluate(click("flip-reset"))
    browser.wait(f"{value('loss')} === '{before}'")
    browser.evaluate(click("flip-all"))
    browser.wait("document.querySelectorAll('#flip-chart .point:not(.now)').length === 10")


def test_the_loss_on_the_page_is_the_models(browser, show):
    vocabulary = LANGUAGE.metadata["tokenizer"]["vocabulary"]
    tokens = torch.tensor([[vocabulary.index(letter) for letter in "The quick "]])
    with torch.no_grad():
        expected = float(LANGUAGE.network()(input_ids=tokens, labels=tokens).loss)
    show(LANGUAGE)
    browser.evaluate(enter("sample", "The quick "))
    browser.wait(f"{value('loss')} === '{expected:.3f} nats'")


def test_a_mask_bit_is_flipped_by_keyboard_and_by_mouse(browser, show):
    show(LANGUAGE)
    name = browser.evaluate(value("tensor"))
    mask = LANGUAGE.masks[name]
    browser.evaluate("document.getElementById('mask').focus()")
    for key in ("ArrowRight", "ArrowDown", " "):
        press(browser, "mask", key)
    state = "kept" if not mask[1, 1] else "dropped"
    assert re.search(rf"Row 1, column 1: .*, {state}\.", browser.evaluate(text("place")))
    browser.evaluate(
        "(c => { const b = c.getBoundingClientRect(); c.dispatchEvent(new MouseEvent('click',"
        " {clientX: b.left + 0.5 * b.width / c.width, clientY: b.top + 0.5 * b.height / c.height})) })"
        "(document.getElementById('mask'))"
    )
    state = "kept" if not mask[0, 0] else "dropped"
    assert re.search(rf"Row 0, column 0: .*, {state}\.", browser.evaluate(text("place")))


def test_the_pictures_show_the_random_weights_and_what_the_mask_leaves(browser, show):
    show(LANGUAGE)
    name = browser.evaluate(value("tensor"))
    mask = LANGUAGE.masks[name]
    pixels = (
        "(c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data])"
        "(document.getElementById('{}'))"
    )
    height, width = (min(size, 64) for size in mask.shape)
    found = {
        which: np.array(browser.evaluate(pixels.format(which))).reshape(height, width, 4)
        for which in ("random-weights", "mask", "left")
    }
    shown = mask[:height, :width]
    assert (found["mask"][shown] == found["mask"][shown][0]).all()
    assert (found["left"][shown] == found["random-weights"][shown]).all()
    assert (found["left"][~shown] == found["left"][~shown][0]).all()


def test_more_random_numbers_come_nearer(browser, show):
    show(RELU)
    browser.evaluate(enter("target", "0.5"))
    numbers = draw(42, "page.subset_sum", (18,), Uniform(1.0)).astype(float)
    for count in (1, 6, 12):
        browser.evaluate(enter("count", count))
        sums = [
            sum(numbers[i] for i in range(count) if subset >> i & 1) for subset in range(2**count)
        ]  # fmt: skip
        best = min(sums, key=lambda each: abs(each - 0.5))
        assert f"{best:.6f}".replace("-", "−") in browser.evaluate(value("sum"))
    line = browser.evaluate("document.querySelector('#width-chart .line').getAttribute('d')")
    heights = [float(point.split()[1]) for point in re.split("[ML]", line)[1:]]
    assert heights == sorted(heights)  # downwards: more numbers have all the sums of fewer, and others
    assert heights[-1] > heights[0] + 100


def test_a_drawn_digit_gets_the_networks_answer(browser, show):
    show(IMAGE)
    assert browser.evaluate(value("digit-answer")) == "–"
    for key in ("ArrowUp", "ArrowUp", "ArrowLeft"):
        press(browser, "digit", key, shiftKey=True)
    assert browser.evaluate(value("digit-answer")) in list("0123456789")
    browser.evaluate(click("digit-clear"))
    assert browser.evaluate(value("digit-answer")) == "–"


def test_samples_of_an_image_ticket_are_read_and_measured(browser, show):
    """They come with the ticket; what does not look like an image of its size and a digit is left out."""
    pixels = torch.tensor(np.stack(IMAGES) / 255, dtype=torch.float32)[:, None]
    with torch.no_grad():
        logits = IMAGE.network()(pixels).logits
    loss = float(torch.nn.functional.cross_entropy(logits, torch.arange(10)))
    show(IMAGE)
    assert abs(float(browser.evaluate(value("loss")).split()[0]) - loss) < 1e-3
    assert "Mean loss of 10 images" in browser.evaluate(text("flip-caption"))
    for digit in range(3):
        browser.evaluate(click("digit-sample"))
        assert browser.evaluate(value("digit-answer")) == str(int(logits[digit].argmax()))
        assert f"A {digit} that" in browser.evaluate(text("draw-note"))
    chances = text("digit-chances")
    before = browser.evaluate(chances)
    browser.evaluate(enter("flipped", 9))
    assert browser.evaluate(chances) != before
    browser.evaluate(click("flip-reset"))
    assert browser.evaluate(chances) == before  # the sample itself, not the drawing of it, is read again
    assert not browser.evaluate("document.getElementById('sample').checkVisibility()")  # of texts


def test_the_search_and_the_kept_shares_are_shown(browser, show):
    metadata = LANGUAGE.metadata | {"curve": [[10, 4.0], [20, 3.0], [30, 2.5]], "loss": 2.625}
    show(replace(LANGUAGE, metadata=metadata))
    assert "30 steps" in browser.evaluate(text("curve-caption"))
    assert "2.625" in browser.evaluate(text("curve-caption"))
    line = browser.evaluate("document.querySelector('#curve-chart .line').getAttribute('d')")
    assert line.count("L") == 2
    shares = browser.evaluate("[...document.querySelectorAll('#kept-shares span')].map(s => s.textContent)")
    for i, (name, mask) in enumerate(sorted(LANGUAGE.masks.items())):
        at = shares.index(name)
        assert shares[at + 1].endswith(f"of {mask.size:,}"), i
        assert abs(float(shares[at + 1].split()[0]) - 100 * mask.mean()) < 1


@pytest.mark.parametrize("curve", [5, [[1]], [["a", 2], [3, 4]], [[1, -1], [2, 3]], [], None])
def test_an_undefined_curve_is_left_out(browser, show, curve):
    show(replace(LANGUAGE, metadata=LANGUAGE.metadata | {"curve": curve}))
    assert browser.evaluate("document.getElementById('curve-figure').hidden")


def test_the_gallery_story_teller_writes_and_follows_its_choices(browser, show):
    """A built ticket: a flipped connection keeps the random weight on the other side of zero."""
    page = show(Ticket.load(GALLERY["stories-4bit"]), 120)
    assert page.stat().st_size < 1_500_000
    lead = browser.evaluate(text("lead"))
    assert "many random weights for each of 260,032 connections from the seed 0 and kept one for each" in lead
    assert "None was trained. They stand in for the numbers of a trained LlamaForCausalLM." in lead
    assert browser.evaluate(SHOWN) == ["write", "look", "flip"]
    before = browser.evaluate(value("loss"))
    assert float(before.split()[0]) < 1  # of what it writes itself
    browser.evaluate(enter("temperature", "0"))
    browser.evaluate(click("write-start"))
    browser.wait(f"{text('written')}.includes('Lily')")
    browser.evaluate(click("write-start"))
    beginning = browser.evaluate(value("sample"))[:40]
    assert browser.evaluate(text("written")).startswith(beginning)
    browser.evaluate(enter("flipped", 5))
    browser.wait(f"parseFloat({value('loss')}) > parseFloat('{before}') + 1")
    browser.evaluate(click("flip-reset"))
    browser.wait(f"{value('loss')} === '{before}'")


def test_choices_are_shown_and_changed(browser, show):
    ticket = strongticket.build(small_model("gpt2"), bits=12)
    show(ticket, width=390)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    name = browser.evaluate(value("tensor"))
    weights, mask = many_weights(ticket.choices[name], ticket.seed, name)
    values = mask.argmax(axis=0) - np.abs(weights[:, 0, 0]).argmin()  # counted from the weight nearest to 0
    browser.evaluate("document.getElementById('mask').focus()")

    def said_after(key: str) -> str:
        press(browser, "mask", key)
        return browser.evaluate(text("place")).replace("−", "-")

    for column in range(1, 6):
        number = ticket.weights(name)[0, column]
        assert (
            said_after("ArrowRight") == f"Row 0, column {column}: weight {values[0, column]}, {number:.4f}."
        )
    flipped = re.fullmatch(r"Row 0, column 5: weight (.*), (.*)\.", said_after(" "))
    assert int(flipped[1]) == (-values[0, 5] or 1)
    assert np.abs(weights[:, 0, 5] - float(flipped[2])).min() < 1e-4 or values[0, 5] <= 0
    assert said_after(" ") == f"Row 0, column 5: weight {values[0, 5]}, {ticket.weights(name)[0, 5]:.4f}."
    assert browser.evaluate("document.querySelector('#look .of-choices').checkVisibility()")
    assert not browser.evaluate("document.querySelector('#look .of-masks').checkVisibility()")


def test_a_damaged_ticket_is_refused_on_the_page(browser, show):
    page = show(RELU)
    whole = page.read_text(encoding="utf-8")
    at = whole.index('"file": "') + 300
    page.write_text(whole[:at] + ("A" if whole[at] != "A" else "B") + whole[at + 1 :], encoding="utf-8")
    browser.open(page)
    browser.wait("document.getElementById('status').classList.contains('wrong')")
    assert "damaged" in browser.evaluate(text("status"))
