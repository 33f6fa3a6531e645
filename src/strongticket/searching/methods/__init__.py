"""Search methods, one file each; `search.config.methods` lists them. docs/add-a-search-method.md has an example."""
