"""Tasks on processes and on a cluster: the same results, and an unreachable address is an error."""

import pytest

from strongticket.errors import StrongTicketError
from strongticket.work import processes as workers
from strongticket.work.store import Store, compute_points


@pytest.fixture(scope="module")
def address(dask_cluster):
    with dask_cluster(1) as started:
        yield started.scheduler_address


def test_all_work_is_done_whoever_does_it(address):
    work = [(2, n) for n in range(9)]
    for where in ({"workers": 1}, {"cluster": address}):  # two processes: test_store.py
        with workers.results(pow, iter(work), **where) as found:
            assert sorted(found) == [2**n for n in range(9)]


def test_points_on_a_cluster_are_the_points_of_this_machine(address, tmp_path):
    points = [{"a": 1}, {"a": 2, "b": 3}]
    here = compute_points(len, points, Store(tmp_path / "here", "1"), workers=1)
    there = compute_points(len, points, Store(tmp_path / "there", "1"), cluster=address)
    assert here == there == [1, 2]
    names = [sorted(path.name for path in (tmp_path / where).iterdir()) for where in ("here", "there")]
    assert names[0] == names[1]


def test_refusals(monkeypatch):
    with (
        pytest.raises(StrongTicketError, match="both given"),
        workers.results(pow, [], workers=2, cluster="tcp://127.0.0.1:9"),
    ):
        pass
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(StrongTicketError, match="workers="):
            workers.processes(wrong)
    monkeypatch.setattr(workers, "CONNECT", 1)
    with (
        pytest.raises(StrongTicketError, match="no Dask scheduler answers"),
        workers.results(pow, [], cluster="tcp://127.0.0.1:9"),
    ):
        pass
