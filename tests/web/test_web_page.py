"""The page of a ticket in a real browser: it runs the ticket, and everything on it can be used."""

import re
from base64 import b64encode
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.web.compare import GALLERY
from tests.web.samples import KNOWN, filled_vit, image_ticket, language_ticket, small_model

import strongticket
from strongticket.choice.source import many_weights
from strongticket.models.tokenizers import Characters
from strongticket.report.ticket_page import write_ticket_page
from strongticket.seeds import Uniform, draw

IMAGES = [np.random.default_rng(digit).integers(0, 256, (8, 8), np.uint8) for digit in range(10)]
SAMPLES = [{"pixels": b64encode(grey.tobytes()).decode(), "label": i} for i, grey in enumerate(IMAGES)]
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


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Name -> page: a language ticket's, an image ticket's, and one of a kind that is not run."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "relu.ticket").write_bytes(KNOWN.read_bytes())
    language_ticket().save(folder / "language.ticket")
    odd = [
        {"pixels": "AAAA", "label": 1},
        {"pixels": "?", "label": 2},
        {"label": 3},
        7,
        SAMPLES[0] | {"label": 10},
    ]
    replace(image_ticket(), metadata={"samples": SAMPLES + odd}).save(folder / "images.ticket")
    return {
        name: write_ticket_page(folder / f"{name}.ticket", folder / f"{name}.html")
        for name in ("language", "images", "relu")
    }


@pytest.mark.parametrize("name", ["language", "images", "relu"])
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True), (320, False)])
def test_pages_open_offline_without_errors_or_sideways_scroll(browser, pages, name, width, dark):
    browser.open(pages[name], width=width, dark=dark)
    browser.wait(READY)
    assert browser.problems == []
    assert [url for url in browser.requests if not url.startswith("data:")] == [pages[name].as_uri()]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert pages[name].stat().st_size < 250_000
    expected = {
        "language": ["write", "look", "flip", "finding"],
        "images": ["draw", "look", "flip", "finding"],
    }
    assert browser.evaluate(SHOWN) == expected.get(name, ["look", "finding", "width"])
    # Whatever takes input has a name that a screen reader says.
    unnamed = (
        "[...document.querySelectorAll('input,select,textarea,button,canvas')]"
        ".filter(e => !e.labels?.length && !e.textContent.trim() && !e.ariaLabel).map(e => e.id)"
    )
    assert browser.evaluate(unnamed) == []


def test_the_page_says_what_the_ticket_is(browser, pages):
    browser.open(pages["language"])
    browser.wait(READY)
    ticket = language_ticket()
    weights = sum(mask.size for mask in ticket.masks.values())
    assert f"drawn {weights:,} random weights from the seed 3" in browser.evaluate(text("lead"))
    assert f"{len(ticket.masks)} of {len(ticket.masks)}" in browser.evaluate(text("facts"))


def test_greedy_text_on_the_page_is_the_librarys(browser, pages):
    browser.open(pages["language"])
    browser.wait(READY)
    browser.evaluate(enter("temperature", "0"))
    browser.evaluate(enter("prompt", "The lazy"))
    browser.evaluate(click("write-start"))
    browser.wait(f"{text('written')}.length > 40")
    browser.evaluate(click("write-start"))
    browser.wait(f"{text('write-note')}.includes('tokens')")
    expected = "The lazy" + "".join(language_ticket().generate("The lazy", tokens=32, temperature=0))
    assert browser.evaluate(text("written"))[: len(expected)] == expected
    assert browser.problems == []


def test_the_first_sample_and_beginning_are_made_of_letters_the_network_knows(browser, pages, tmp_path):
    browser.open(pages["language"])
    browser.wait(READY)
    assert browser.evaluate(value("sample")).startswith("The ")
    assert "wrote this sample itself" in browser.evaluate(text("flip-caption"))
    language_ticket(tokenizer=Characters.of("acgt")).save(tmp_path / "genes.ticket")
    browser.open(write_ticket_page(tmp_path / "genes.ticket", tmp_path / "genes.html"))
    browser.wait(READY)
    assert browser.evaluate(value("prompt")) == "a"
    assert set(browser.evaluate(value("sample"))) <= set("acgt")
    assert browser.problems == []


def test_a_letter_the_network_does_not_know_is_named(browser, pages):
    browser.open(pages["language"])
    browser.wait(READY)
    browser.evaluate(enter("prompt", "größe"))
    browser.evaluate(click("write-start"))
    browser.wait(f"{text('write-note')}.includes('ö')")
    assert browser.evaluate(text("write-start")) == "Write"
    assert browser.problems == []


def test_flipped_bits_change_the_loss_and_restoring_brings_it_back(browser, pages):
    browser.open(pages["language"])
    browser.wait(READY)
    before = browser.evaluate(value("loss"))
    assert re.fullmatch(r"\d+\.\d{3} nats", before)
    browser.evaluate(enter("flipped", 9))
    browser.wait(f"{value('loss')} !== '{before}'")
    assert browser.evaluate(value("flipped-shown")) == "50 %"
    browser.evaluate(click("flip-reset"))
    browser.wait(f"{value('loss')} === '{before}'")
    browser.evaluate(click("flip-all"))
    browser.wait("document.querySelectorAll('#flip-chart .point:not(.now)').length === 10")
    assert browser.problems == []


def test_the_loss_on_the_page_is_the_models(browser, pages):
    ticket = language_ticket()
    vocabulary = ticket.metadata["tokenizer"]["vocabulary"]
    tokens = torch.tensor([[vocabulary.index(letter) for letter in "The quick "]])
    with torch.no_grad():
        expected = float(ticket.network()(input_ids=tokens, labels=tokens).loss)
    browser.open(pages["language"])
    browser.wait(READY)
    browser.evaluate(enter("sample", "The quick "))
    browser.wait(f"{value('loss')} === '{expected:.3f} nats'")


def test_a_mask_bit_is_flipped_by_keyboard_and_by_mouse(browser, pages):
    browser.open(pages["language"])
    browser.wait(READY)
    name = browser.evaluate(value("tensor"))
    mask = language_ticket().masks[name]
    browser.evaluate("document.getElementById('mask').focus()")
    for key in ("ArrowRight", "ArrowDown", " "):
        browser.evaluate(
            f"document.getElementById('mask').dispatchEvent(new KeyboardEvent('keydown', {{key: {key!r}}}))"
        )
    state = "kept" if not mask[1, 1] else "dropped"
    assert re.search(rf"Row 1, column 1: .*, {state}\.", browser.evaluate(text("place")))
    browser.evaluate(
        "(c => { const b = c.getBoundingClientRect(); c.dispatchEvent(new MouseEvent('click',"
        " {clientX: b.left + 0.5 * b.width / c.width, clientY: b.top + 0.5 * b.height / c.height})) })"
        "(document.getElementById('mask'))"
    )
    state = "kept" if not mask[0, 0] else "dropped"
    assert re.search(rf"Row 0, column 0: .*, {state}\.", browser.evaluate(text("place")))
    assert browser.problems == []


def test_the_pictures_show_the_random_weights_and_what_the_mask_leaves(browser, pages):
    browser.open(pages["language"])
    browser.wait(READY)
    name = browser.evaluate(value("tensor"))
    mask = language_ticket().masks[name]
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


def test_more_random_numbers_come_nearer(browser, pages):
    browser.open(pages["relu"])
    browser.wait(READY)
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


def test_a_drawn_digit_gets_the_networks_answer(browser, pages):
    browser.open(pages["images"])
    browser.wait(READY)
    assert browser.evaluate(value("digit-answer")) == "–"
    for key in ("ArrowUp", "ArrowUp", "ArrowLeft"):
        browser.evaluate(
            "document.getElementById('digit').dispatchEvent("
            f"new KeyboardEvent('keydown', {{key: {key!r}, shiftKey: true}}))"
        )
    assert browser.evaluate(value("digit-answer")) in list("0123456789")
    browser.evaluate(click("digit-clear"))
    assert browser.evaluate(value("digit-answer")) == "–"
    assert browser.problems == []


def test_samples_of_an_image_ticket_are_read_and_measured(browser, pages):
    """They come with the ticket; what does not look like an image of its size and a digit is left out."""
    pixels = torch.tensor(np.stack(IMAGES) / 255, dtype=torch.float32)[:, None]
    with torch.no_grad():
        logits = filled_vit(image_ticket())(pixels).logits
    loss = float(torch.nn.functional.cross_entropy(logits, torch.arange(10)))
    browser.open(pages["images"])
    browser.wait(READY)
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
    assert browser.problems == []


def test_the_search_and_the_kept_shares_are_shown(browser, tmp_path):
    ticket = language_ticket()
    metadata = ticket.metadata | {"curve": [[10, 4.0], [20, 3.0], [30, 2.5]], "loss": 2.625}
    replace(ticket, metadata=metadata).save(tmp_path / "a.ticket")
    browser.open(write_ticket_page(tmp_path / "a.ticket", tmp_path / "a.html"))
    browser.wait(READY)
    assert "30 steps" in browser.evaluate(text("curve-caption"))
    assert "2.625" in browser.evaluate(text("curve-caption"))
    line = browser.evaluate("document.querySelector('#curve-chart .line').getAttribute('d')")
    assert line.count("L") == 2
    shares = browser.evaluate("[...document.querySelectorAll('#kept-shares span')].map(s => s.textContent)")
    for i, (name, mask) in enumerate(sorted(ticket.masks.items())):
        at = shares.index(name)
        assert shares[at + 1].endswith(f"of {mask.size:,}"), i
        assert abs(float(shares[at + 1].split()[0]) - 100 * mask.mean()) < 1
    assert browser.problems == []


@pytest.mark.parametrize("curve", [5, [[1]], [["a", 2], [3, 4]], [[1, -1], [2, 3]], [], None])
def test_an_undefined_curve_is_left_out(browser, tmp_path, curve):
    ticket = language_ticket()
    replace(ticket, metadata=ticket.metadata | {"curve": curve}).save(tmp_path / "a.ticket")
    browser.open(write_ticket_page(tmp_path / "a.ticket", tmp_path / "a.html"))
    browser.wait(READY)
    assert browser.evaluate("document.getElementById('curve-figure').hidden")
    assert browser.problems == []


def test_the_gallery_story_teller_writes_and_follows_its_choices(browser, tmp_path):
    """A built ticket: a flipped connection keeps the random weight on the other side of zero."""
    page = write_ticket_page(GALLERY["stories"], tmp_path / "stories.html")
    assert page.stat().st_size < 1_500_000
    browser.open(page)
    browser.wait(READY, 120)
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
    assert browser.problems == []


def test_choices_are_shown_and_changed(browser, tmp_path):
    ticket = strongticket.build(small_model("gpt2"), bits=12)
    ticket.save(tmp_path / "built.ticket")
    browser.open(write_ticket_page(tmp_path / "built.ticket", tmp_path / "built.html"), width=390)
    browser.wait(READY)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390
    name = browser.evaluate(value("tensor"))
    weights, mask = many_weights(ticket.choices[name], ticket.seed, name)
    values = mask.argmax(axis=0) - np.abs(weights[:, 0, 0]).argmin()  # counted from the weight nearest to 0
    browser.evaluate("document.getElementById('mask').focus()")

    def press(key: str) -> str:
        browser.evaluate(
            f"document.getElementById('mask').dispatchEvent(new KeyboardEvent('keydown', {{key: {key!r}}}))"
        )
        return browser.evaluate(text("place")).replace("−", "-")

    for column in range(1, 6):
        number = ticket.weights(name)[0, column]
        assert press("ArrowRight") == f"Row 0, column {column}: weight {values[0, column]}, {number:.4f}."
    flipped = re.fullmatch(r"Row 0, column 5: weight (.*), (.*)\.", press(" "))
    assert int(flipped[1]) == (-values[0, 5] or 1)
    assert np.abs(weights[:, 0, 5] - float(flipped[2])).min() < 1e-4 or values[0, 5] <= 0
    assert press(" ") == f"Row 0, column 5: weight {values[0, 5]}, {ticket.weights(name)[0, 5]:.4f}."
    assert browser.evaluate("document.querySelector('#look .of-choices').checkVisibility()")
    assert not browser.evaluate("document.querySelector('#look .of-masks').checkVisibility()")
    assert browser.problems == []


def test_a_damaged_ticket_is_refused_on_the_page(browser, pages, tmp_path):
    page = tmp_path / "damaged.html"
    whole = pages["relu"].read_text(encoding="utf-8")
    at = whole.index('"file": "') + 300
    page.write_text(whole[:at] + ("A" if whole[at] != "A" else "B") + whole[at + 1 :], encoding="utf-8")
    browser.open(page)
    browser.wait("document.getElementById('status').classList.contains('wrong')")
    assert "damaged" in browser.evaluate(text("status"))
    assert browser.problems == []
