"""Shared by all tests: shapes in signatures are checked, property tests are the same on every machine."""

import gc
import os
import warnings
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Some virtual machines announce AMX and die of it; oneDNN reads this once, and would take it for half precision.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

# Must come before these packages are imported. Not builders.assign: numba cannot compile a checked function.
BUILD = ("attention", "calibration", "network", "product", "relu", "source")
CHECKED = [
    *("strongticket.theory", "strongticket.nets", "strongticket.models.attention"),
    *(f"strongticket.builders.{name}" for name in BUILD),
]
install_import_hook(CHECKED, "beartype.beartype")

# `--hypothesis-profile=fresh` draws other examples each time; pytest loads it after this file.
for profile, derandomize in (("fresh", False), ("repeatable", True)):
    settings.register_profile(
        profile, deadline=None, derandomize=derandomize, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("repeatable")

# Files that `make quick` leaves out. The longest begin first, so that no process is left alone with one at the end.
SLOW = (
    "test_examples",
    "test_notebooks",
    "test_faults",
    "test_crafted",
    "test_build_resume",
    "test_models_architectures",
    "test_store",
    "test_release",
    "test_compiled",
    "test_cli_demo",
    "test_web_page",
    "test_figures",
    "test_build_model_cli",
    "test_build_loss",
    "test_web_reader",
    "test_hf_folder",
    "test_search_methods",
    "test_web_networks",
    "test_models_certify",
    "test_models_attention",
    "test_models_networks",
    "test_figure7",
    "test_rule",
    "test_cluster",
    "test_frontier",
    "test_web_built",
    "test_hf_hub",
    "test_cli_missing",
    "test_nets_extremes",
    "test_hf_tools",
    "test_multimodal",
    "test_lengths",
    "test_initialisations",
    "test_algorithms",
    "test_constant",
    "test_build_calibration",
    "test_build_bits",
    "test_processes",
    "test_docs_site",
)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.stem in SLOW:
            item.add_marker("slow")
    items.sort(key=lambda item: SLOW.index(item.path.stem) if item.path.stem in SLOW else len(SLOW))


def pytest_collection_finish():
    _set_aside()


def pytest_runtest_teardown():
    _set_aside()


def _set_aside():
    """Every training collects garbage, which takes up to a second where all libraries are loaded: leave those out."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def dask_cluster():
    """A function: number of workers -> a cluster on this machine, for a `with` statement."""
    distributed = pytest.importorskip("distributed", reason="needs strongticket[cluster]")

    @contextmanager
    def started(workers: int):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cluster = distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=50,
            )
        with cluster:
            yield cluster

    return started
