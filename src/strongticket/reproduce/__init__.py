"""The paper's figures and further studies: one file each, run by its name (see study.py)."""
