"""Experiments that go past the paper's figures, one module or folder each (see driver.py)."""
