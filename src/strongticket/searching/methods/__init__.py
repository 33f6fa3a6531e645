"""Search methods; `searching/registry.py` lists them. docs/add-a-search-method.md has an example."""
