"""Every example in a docstring runs, and every public name has one. Their form is checked by ruff (D)."""

import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest
import torch
from torch import nn

import strongticket
from strongticket.nets import initialise

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
