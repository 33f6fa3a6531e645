"""The quick part of clusters that fail: one or two seconds each."""

import pytest

pytest.importorskip("distributed", reason="needs strongticket[cluster]")

from tests.faults import cluster

QUICK = (
    cluster.one_core,
    cluster.worker_killed,
    cluster.other_version,
    cluster.without_package,
    cluster.wrong_address,
)


@pytest.mark.parametrize("failure", QUICK, ids=lambda failure: failure.__name__)
def test_failures_of_a_cluster_are_survived_or_explained(failure):
    assert cluster.FAILURES[failure] in failure()
