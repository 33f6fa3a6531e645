"""Uploading to the hub and loading from it, against a stand-in on loopback."""

import os
import subprocess
import sys

from tests.hf.local_hub import LocalHub

PROGRAM = """
from strongticket import Ticket
print(Ticket.load("found.ticket").push_to_hub("me/found"), flush=True)

import strongticket.hf
from transformers import AutoModelForCausalLM
ticket = Ticket.from_pretrained("me/found")
ticket.verify()
ticket.save("again.ticket")
print(type(AutoModelForCausalLM.from_pretrained("me/found")).__name__, flush=True)
Ticket.from_pretrained("me/nothing")
"""


def test_push_and_load_again(ticket, tmp_path):
    """In a process of its own: huggingface_hub reads its address and cache when it is imported."""
    path = ticket.save(tmp_path / "found.ticket")
    with LocalHub() as hub:
        settings = dict(
            HF_ENDPOINT=hub.url, HF_HOME=str(tmp_path / "cache"), HF_TOKEN="secret", no_proxy="127.0.0.1"
        )
        settings |= dict(HF_HUB_OFFLINE="0", HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_TELEMETRY="1")
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=os.environ | settings,
        )
        assert done.stdout.split() == [f"{hub.url}/me/found", "GPT2LMHeadModel"], done.stderr
        files = hub.files["me/found"].keys()
        assert {"config.json", "model.safetensors", "README.md", "tokenizer.json"} <= files
        assert (tmp_path / "again.ticket").read_bytes() == path.read_bytes()
        assert done.returncode == 1
        assert "config.json cannot be loaded from the Hugging Face hub" in done.stderr
