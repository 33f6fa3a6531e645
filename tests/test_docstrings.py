"""Every example in a docstring runs, and every public name has one."""

import doctest
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pytest
import torch
from torch import nn

import strongticket
from strongticket.nets import initialise

ROOMS = ("builders", "hf", "nets", "pretrained", "searching", "seeds", "subset_sum", "theory", "ticket")
MODULES = sorted(module.name for module in pkgutil.walk_packages(strongticket.__path__, "strongticket."))
# What a reader of the examples is expected to know.
KNOWN = {"np": np, "torch": torch, "nn": nn, "initialise": initialise}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    public = {name: getattr(strongticket, name) for name in strongticket.__all__}
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for example in finder.find(module, name, globs={**KNOWN, **public, **vars(module)}):
        runner.run(example)
    assert runner.failures == 0, "see the captured output"


@pytest.mark.parametrize("name", strongticket.__all__)
def test_public_names_have_an_example(name):
    named = getattr(strongticket, name)
    is_error = isinstance(named, type) and issubclass(named, Exception)
    if not isinstance(named, str) and not is_error:
        assert ">>>" in (inspect.getdoc(named) or "")


def public_functions(room):
    """Name -> function, of what a room exports; of a Ticket its methods."""
    module = importlib.import_module(f"strongticket.{room}")
    found = {name: getattr(module, name) for name in getattr(module, "__all__", None) or vars(module)}
    if room == "ticket":
        found |= {f"Ticket.{name}": getattr(module.Ticket, name) for name in dir(module.Ticket)}
    ours = {name: thing for name, thing in found.items() if "._" not in name and name[:1] != "_"}
    return {
        name: thing for name, thing in ours.items() if inspect.isfunction(thing) or inspect.ismethod(thing)
    }


@pytest.mark.parametrize("room", ROOMS)
def test_public_functions_explain_every_argument(room):
    """As `name: meaning`, or as `name` in backquotes; a word that happens to be in a sentence is not enough."""
    functions = public_functions(room)
    assert functions
    missing = [
        f"{name}({argument})"
        for name, function in functions.items()
        for argument in inspect.signature(function).parameters
        if argument not in {"self", *explained_in(inspect.getdoc(function) or "")}
    ]
    assert not missing


def explained_in(docstring):
    fields = re.findall(r"(?:^|; |\. )\s*(\w+(?:, \w+)*): ", docstring, re.MULTILINE)
    return {*re.findall(r"`(\w+)`", docstring), *(name for field in fields for name in field.split(", "))}


def test_an_argument_that_is_only_a_word_is_not_explained():
    assert explained_in("Draw the weights of a name.\n\nlaw, shape: of it; seed: any") == {
        "law",
        "shape",
        "seed",
    }
    assert explained_in("Draw `weights`. threads: for that") == {"weights", "threads"}
