import math

import torch

from strongticket.reproduce import angular


def test_walks_are_as_appendix_b1_says():
    data = angular.walks(0, "train")
    assert len(data.velocity) == len(data.start) == 10_000
    assert data.velocity.abs().max() <= math.pi
    assert data.velocity.min() < -3
    assert data.velocity.max() > 3
    assert 0 <= data.start.min() < 0.01
    assert 3.13 < data.start.max() <= math.pi
    points = data.points(5)
    assert points.shape == (10_000, 5, 2)
    angle = data.start[7] + 3 * data.velocity[7]
    torch.testing.assert_close(points[7, 2], torch.tensor([math.cos(angle), math.sin(angle)]))


def test_splits_and_seeds_differ_and_repeat():
    a, b = angular.walks(0, "train", 10), angular.walks(0, "test", 10)
    assert not torch.equal(a.velocity, b.velocity)
    assert not torch.equal(a.velocity, angular.walks(1, "train", 10).velocity)
    assert torch.equal(a.velocity, angular.walks(0, "train", 10).velocity)


def test_training_lowers_the_loss_repeatably_and_moves_the_token():
    first = angular.train_target(1, epochs=4, samples=2048)
    assert first.test_loss < math.pi**2 / 3  # below always answering zero
    assert first.token.abs().max() > 0
    assert not any(parameter.requires_grad for parameter in first.network.parameters())
    again = angular.train_target(1, epochs=4, samples=2048)
    assert first.test_loss == again.test_loss
    assert torch.equal(first.token, again.token)
    for name, tensor in first.network.state_dict().items():
        assert torch.equal(tensor, again.network.state_dict()[name])


def test_the_folded_forward_of_training_is_the_networks():
    target = angular.train_target(2, epochs=1, samples=256)
    inputs = target.inputs(angular.walks(2, "test", 50), length=9)
    assert inputs.shape == (50, 10, 2)
    assert torch.equal(inputs[:, 0], target.token.expand(50, 2))
    torch.testing.assert_close(angular._at_token(target.network, inputs), target.network(inputs)[:, 0, 0])


def test_a_token_held_at_zero_would_leave_query_and_key_untrained():
    network = angular.train_target(0, epochs=1, samples=64).network.requires_grad_(True)
    tokens = angular._with_token(torch.zeros(2), angular.walks(0, "train", 64).points(4))
    network(tokens[:, :1], tokens).square().sum().backward()
    assert network.query.grad.abs().max() == 0
    assert network.key.grad.abs().max() == 0
    assert network.value.grad.abs().max() > 0
