"""Text to learn from, tokenizers, Hugging Face model folders, and generating text."""
