"""Whether this machine's processor runs half precision at all.

Some virtual machines announce matrix instructions (AMX) that they do not run: the first product in half precision ends
the process, without an exception. So it is tried in another process first.
"""

import os
import subprocess
import sys
from functools import cache

from strongticket.errors import StrongTicketError

_TRIAL = "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); x @ x"
ALLOWED = "ONEDNN_MAX_CPU_ISA"  # the newest instructions that torch's library may use
WITHOUT_AMX = "AVX512_CORE_FP16"


def check_half_precision() -> None:
    """StrongTicketError if a product in half precision would end this process."""
    if not _runs(os.environ.get(ALLOWED)):
        raise StrongTicketError(
            "this processor announces instructions for half precision that it cannot run",
            hint=f"Set {ALLOWED}={WITHOUT_AMX} and run the same command again, or leave precision at float32.",
        )


@cache
def _runs(allowed: str | None) -> bool:
    return subprocess.run([sys.executable, "-c", _TRIAL], stderr=subprocess.DEVNULL).returncode == 0
