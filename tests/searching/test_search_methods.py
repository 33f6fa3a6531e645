"""Every method: its ticket reloads to the same loss to the last bit, and a resumed run gives the same bytes."""

import numpy as np
import pytest
import torch
from tests.faults.checkpoints import interrupted
from tests.searching.test_search_run import valid_loss

from strongticket.searching import detach, masks, search
from strongticket.searching.architectures import make_model
from strongticket.searching.masking.weights import Rounded
from strongticket.searching.methods.baselines import integers, to_binary, to_ternary
from strongticket.searching.registry import METHODS, find_method
from strongticket.seeds import Normal, draw
from strongticket.ticket import Ticket

NO_OFFSET = torch.tensor(0.0)


@pytest.mark.parametrize("method", METHODS)
def test_reload_and_resume(tiny, tmp_path, method):
    config = tiny.changed(method=method, law="signed", scope="global", steps=5, save_every=3, lr=1e-2)
    result = search(config, out=tmp_path / "found.ticket")
    loaded = Ticket.load(tmp_path / "found.ticket")
    loaded.verify()
    assert valid_loss(config, loaded) == result.loss
    assert np.isfinite(result.loss)
    if method == "random":  # nothing is trained
        return
    interrupted(config, 4)
    resumed = search(config.changed(resume=True))
    assert resumed.ticket.to_bytes() == (tmp_path / "found.ticket").read_bytes()


@pytest.mark.parametrize(
    ("nearest", "levels"), [(integers(8), 127), (integers(4), 7), (to_ternary, 1), (to_binary, 1)]
)
def test_rounding(nearest, levels):
    weights = torch.randn(40, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    step, whole = nearest(weights, NO_OFFSET)
    assert torch.equal(whole, whole.round())
    assert whole.abs().max() == levels
    if levels > 1:
        assert (weights - step * whole).abs().max() <= step / 2
    else:  # the step is the one of the least squared error
        torch.testing.assert_close(step, (weights * whole).sum() / (whole**2).sum())
    zeros, _ = nearest(torch.zeros(2, 2), NO_OFFSET)
    assert zeros > 0


def test_weights_move_to_the_nearest_of_their_own_numbers():
    """Offsets make each weight's numbers random: step · (c + offset)."""
    generator = torch.Generator().manual_seed(0)
    latent, offset = torch.randn(40, 30, generator=generator), torch.rand(40, 30, generator=generator) - 0.5
    rounded = Rounded(integers(4), offset)
    step, whole = rounded.nearest(latent, offset)
    assert torch.equal(rounded(latent), step * (whole + offset))
    near = (latent / step - offset).abs() <= 7.5  # the others are cut off
    assert near.float().mean() > 0.99
    assert ((rounded(latent) - latent).abs()[near] <= step * 0.50001).all()


@pytest.mark.parametrize(
    ("method", "levels"),
    [
        ("int4", 7),
        ("ternary", 1),
        ("binary", 1),
        ("rounded-int4", 7),
        ("blended-int4", 7),
        ("blended-ternary", 1),
    ],
)
def test_quantised_weights_have_few_levels(tiny, method, levels):
    network = search(tiny.changed(method=method, steps=2)).ticket.network()
    for name, weight in network.named_parameters():
        if weight.ndim == 2:
            step = weight.abs()[weight != 0].min()
            whole = weight / step
            assert torch.allclose(whole, whole.round(), atol=1e-4), name
            assert whole.abs().max() <= levels + 1e-3, name


@pytest.mark.parametrize("source", [{}, {"dropped": 0.3, "locked": 0.2}])
def test_annealed_gates_harden_into_the_mask(tiny, source):
    model, attachment = attached(tiny, "annealed", **source)
    for done in (0, 30, 90, 95, 99):
        attachment.before_step(done, 100)
        softness = max(0.0, 1 - done / 95)
        attachment.refresh()
        for matrix in attachment.masked:
            name, weights, sizes = matrix.name, matrix.weights, matrix.parameter.detach().abs()
            frozen = torch.from_numpy(weights.source.weights())
            hard = frozen * torch.from_numpy(masks(model)[name])
            model.train()
            cut = weights.cuts[0].threshold
            expected = hard
            if softness:
                gate = (0.5 + (sizes - cut) / (2 * softness * cut)).clamp(0, 1)
                if source:
                    decision = torch.from_numpy(weights.source.seed_decision())
                    gate = torch.where(decision == 0, gate, (decision == 1).float())
                expected = frozen * gate
            assert torch.allclose(weights_of(matrix), expected, rtol=1e-5, atol=1e-8), (name, done)
            model.eval()  # what is validated and stored
            assert torch.equal(weights_of(matrix), hard), (name, done)


def test_detaching_an_annealed_model_leaves_the_mask(tiny):
    model, attachment = attached(tiny, "annealed")
    attachment.before_step(0, 10)
    model.train()
    name, mask = next(iter(masks(model).items()))
    hard = torch.from_numpy(attachment.sources[name].weights() * mask)
    assert torch.equal(dict(detach(model).named_parameters())[name], hard)


def test_blended_weights_move_from_plain_to_rounded(tiny):
    model, attachment = attached(tiny, "blended-ternary")
    for done, share in ((0, 0.0), (38, 0.4), (95, 1.0), (99, 1.0)):
        attachment.before_step(done, 100)
        for matrix in attachment.masked:
            model.train()
            trained, plain = weights_of(matrix), matrix.parameter.detach()
            model.eval()
            rounded = weights_of(matrix)
            assert torch.allclose(trained, plain + share * (rounded - plain), atol=1e-7), (matrix.name, done)
            assert len(rounded.unique()) == 3


def test_signed_masks_invert_what_has_a_negative_score(tiny):
    model, attachment = attached(tiny, "signed")
    for matrix in attachment.masked:
        frozen, scores = matrix.weights.frozen, matrix.parameter.detach()
        mask = torch.from_numpy(masks(model)[matrix.name])
        expected = frozen * mask * torch.where(scores < 0, -1.0, 1.0)
        assert torch.equal(weights_of(matrix), expected), matrix.name


def test_coats_multiply_by_the_number_of_masks(tiny):
    _, attachment = attached(tiny, "multicoat")
    for matrix in attachment.masked:
        sizes = matrix.parameter.detach().abs()
        ranks = sizes.view(-1).argsort(descending=True).argsort().view_as(sizes)
        counts = [round(0.3 * part / 3 * sizes.numel()) for part in (3, 2, 1)]
        levels = sum((ranks < count).float() for count in counts)
        assert torch.equal(weights_of(matrix), matrix.weights.frozen * levels), matrix.name


def test_biprop_has_one_size_of_weight_per_tensor(tiny):
    model, attachment = attached(tiny, "biprop", qk_scale=1.0)
    for matrix in attachment.masked:
        mask, source = masks(model)[matrix.name], matrix.weights.source
        sizes = weights_of(matrix).abs()[torch.from_numpy(mask)]
        assert torch.all(sizes == sizes[0])
        latent = np.abs(draw(0, matrix.name, source.shape, Normal(source.law.scale)))
        assert float(sizes[0]) == pytest.approx(latent[mask].mean(), rel=1e-5)


def test_a_threshold_keeps_what_training_leaves(tiny):
    model, attachment = attached(tiny, "threshold")
    assert all(int(mask.sum()) == round(0.3 * mask.size) for mask in masks(model).values())
    with torch.no_grad():
        for matrix in attachment.masked:
            matrix.parameter.mul_(2)
    assert all(int(mask.sum()) > 0.5 * mask.size for mask in masks(model).values())


def test_gates_are_drawn_in_training_and_fixed_in_evaluation(tiny):
    model, attachment = attached(tiny, "bernoulli")
    matrix = attachment.masked[0]
    torch.manual_seed(0)
    model.train()
    weights = [weights_of(matrix) for _ in range(20)]
    drawn = [each != 0 for each in weights]
    assert all(
        torch.equal(each, matrix.weights.frozen * gate) for each, gate in zip(weights, drawn, strict=True)
    )
    assert not torch.equal(drawn[0], drawn[1])
    assert float(torch.stack(drawn).float().mean()) == pytest.approx(0.3, abs=0.05)
    model.eval()
    assert torch.equal(weights_of(matrix), weights_of(matrix))


def test_iterand_draws_dropped_weights_again(tiny):
    model, attachment = attached(tiny, "iterand")
    matrix = attachment.masked[0]
    weights, name = matrix.weights, matrix.name
    before, kept = weights_of(matrix), torch.from_numpy(masks(model)[name])
    attachment.before_step(0, 8)
    assert not weights.draw_of.any()
    attachment.before_step(2, 8)
    again = weights.draw_of == 1
    assert not (again & kept).any()
    assert float(again[~kept].float().mean()) == pytest.approx(0.1, abs=0.03)
    assert torch.equal(weights_of(matrix), before)  # what is kept stays
    with torch.no_grad():
        matrix.parameter.copy_(torch.where(again, 9.0, matrix.parameter))
    stored = attachment.stored()[name]
    assert stored.draws[f"{name}:draw1"].sum() == min(int(again.sum()), int(kept.sum()))
    assert not (stored.mask & again.numpy()).any()
    later = draw(weights.source.seed, f"{name}:draw1", matrix.shape, weights.source.law)
    assert np.array_equal(weights.frozen[again].numpy(), later[again.numpy()])


def attached(config, method, **changes):
    """A tiny model with that method attached, before training."""
    config = config.changed(method=method, **changes)
    model = make_model(config, 9)
    return model, find_method(method)(model, config)


def weights_of(matrix):
    """The weights of a matrix as the model computes them now."""
    module, attribute = matrix.owners[0]
    return getattr(module, attribute).detach()
