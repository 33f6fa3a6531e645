"""The paper's figures, each in a folder of its own."""
