import pytest
import torch

from strongticket.builders import build_network
from strongticket.errors import StrongTicketError
from strongticket.nets import MergedAttention, merge, output_error
from strongticket.reproduce import circle
from strongticket.reproduce.angular import train_target, walks
from strongticket.reproduce.circle import circle_errors


@pytest.mark.parametrize("length", [1, 4, 40, 129])
def test_the_short_cut_is_attention_at_every_position(length):
    target = train_target(0, epochs=2, samples=512)
    sources = [
        merge(build_network(target.network, width=n, seed=n, certificate=False).network(), torch.float64)
        for n in (4, 9, 24)
    ]
    goal = merge(target.network, torch.float64)
    angles = walks(3, "test", 20).angles(length)
    points = torch.stack([angles.cos(), angles.sin()], -1)
    x = torch.cat([target.token.double().expand(20, 1, 2), points], 1)
    query_key, value_output = (
        torch.cat([getattr(s, name) for s in sources]) for name in ("query_key", "value_output")
    )
    found = circle_errors(goal, query_key, value_output, target.token, angles)
    for i, source in enumerate(sources):
        direct = output_error(goal, source, x)
        assert float(found[0][i]) == pytest.approx(float(direct.max()), rel=1e-7, abs=1e-14)
        assert float(found[1][i]) == pytest.approx(float(direct.mean()), rel=1e-7, abs=1e-14)


def test_larger_logits_get_more_harmonics():
    target = train_target(0, epochs=1, samples=64)
    goal = merge(target.network, torch.float64)
    query_key = 5 * torch.eye(2).double()[None]
    angles = walks(0, "test", 5).angles(8)
    arguments = (goal, query_key, goal.value_output, target.token, angles)
    assert circle._errors(*arguments, circle.HARMONICS[0]) is None
    found = circle_errors(*arguments)
    points = torch.stack([angles.cos(), angles.sin()], -1)
    x = torch.cat([target.token.double().expand(5, 1, 2), points], 1)
    source = MergedAttention(query_key, goal.value_output, constant=False)
    assert float(found[0][0]) == pytest.approx(float(output_error(goal, source, x).max()), rel=1e-7)


def test_logits_too_large_for_it_are_refused():
    target = train_target(0, epochs=1, samples=64)
    goal = merge(target.network, torch.float64)
    with pytest.raises(StrongTicketError, match="logits are too large"):
        circle_errors(
            goal,
            600 * torch.eye(2).double()[None],
            goal.value_output,
            target.token,
            walks(0, "test", 5).angles(8),
        )
