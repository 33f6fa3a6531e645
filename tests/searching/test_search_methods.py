"""Every method: its ticket reloads to the same loss to the last bit, and a resumed run gives the same bytes."""

import numpy as np
import pytest
import torch
from tests.faults.checkpoints import interrupted
from tests.searching.test_search_run import valid_loss

from strongticket.searching import detach, masked_tensors, search
from strongticket.searching.architectures import make_model
from strongticket.searching.config.methods import METHODS, find_method
from strongticket.searching.masking.quantised import binary, integers, ternary
from strongticket.seeds import Normal, draw
from strongticket.ticket import Ticket


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
    ("rounding", "levels"), [(integers(8), 127), (integers(4), 7), (ternary, 1), (binary, 1)]
)
def test_rounding(rounding, levels):
    weights = torch.randn(40, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    step, whole = rounding(weights)
    assert torch.equal(whole, whole.round())
    assert whole.abs().max() == levels
    if levels > 1:
        assert (weights - step * whole).abs().max() <= step / 2
    else:  # the step is the one of the least squared error
        torch.testing.assert_close(step, (weights * whole).sum() / (whole**2).sum())
    zeros, _ = rounding(torch.zeros(2, 2))
    assert zeros > 0


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
        for name, masked in masked_tensors(model).items():
            hard = torch.from_numpy(masked.frozen.weights()) * masked.mask
            model.train()
            soft, sizes, cut = (
                weights_of(attachment, name),
                masked.scores.detach().abs(),
                masked._cut.threshold,
            )
            expected = hard
            if softness:
                gate = (0.5 + (sizes - cut) / (2 * softness * cut)).clamp(0, 1)
                fates = masked.fates()
                if fates is not None:
                    gate = torch.where(fates == 0, gate, (fates == 1).float())
                expected = torch.from_numpy(masked.frozen.weights()) * gate
            assert torch.allclose(soft, expected, rtol=1e-5, atol=1e-8), (name, done)
            model.eval()  # what is validated and stored
            assert torch.equal(weights_of(attachment, name), hard), (name, done)
            assert np.array_equal(masked.stored().mask, masked.mask.numpy())


def test_detaching_an_annealed_model_leaves_the_mask(tiny):
    model, attachment = attached(tiny, "annealed")
    attachment.before_step(0, 10)
    model.train()
    name, masked = next(iter(masked_tensors(model).items()))
    hard = torch.from_numpy(masked.frozen.weights()) * masked.mask
    assert torch.equal(dict(detach(model).named_parameters())[name], hard)


def test_blended_weights_move_from_plain_to_rounded(tiny):
    model, attachment = attached(tiny, "blended-ternary")
    for done, share in ((0, 0.0), (38, 0.4), (95, 1.0), (99, 1.0)):
        attachment.before_step(done, 100)
        for matrix in attachment.masked:
            model.train()
            trained, plain = weights_of(attachment, matrix.name), matrix.parameter.detach()
            model.eval()
            rounded = weights_of(attachment, matrix.name)
            assert torch.allclose(trained, plain + share * (rounded - plain), atol=1e-7), (matrix.name, done)
            assert len(rounded.unique()) == 3


def test_signed_masks_invert_what_has_a_negative_score(tiny):
    model, attachment = attached(tiny, "signed")
    for name, source in masked_tensors(model).items():
        frozen, scores = torch.from_numpy(source.frozen.weights()), source.scores.detach()
        expected = frozen * source.mask * torch.where(scores < 0, -1.0, 1.0)
        assert torch.equal(weights_of(attachment, name), expected), name


def test_coats_multiply_by_the_number_of_masks(tiny):
    model, attachment = attached(tiny, "multicoat")
    for name, source in masked_tensors(model).items():
        frozen, sizes = torch.from_numpy(source.frozen.weights()), source.scores.detach().abs()
        ranks = sizes.view(-1).argsort(descending=True).argsort().view_as(sizes)
        counts = [round(0.3 * share / 3 * sizes.numel()) for share in (3, 2, 1)]
        levels = sum((ranks < count).float() for count in counts)
        assert torch.equal(weights_of(attachment, name), frozen * levels), name


def test_biprop_has_one_size_of_weight_per_tensor(tiny):
    model, attachment = attached(tiny, "biprop", qk_scale=1.0)
    for name, source in masked_tensors(model).items():
        weight = weights_of(attachment, name)
        sizes = weight.abs()[source.mask]
        assert torch.all(sizes == sizes[0])
        latent = np.abs(draw(0, name, source.frozen.shape, Normal(source.frozen.law.scale)))
        assert float(sizes[0]) == pytest.approx(latent[source.mask.numpy()].mean(), rel=1e-5)


def test_a_threshold_keeps_what_training_leaves(tiny):
    model, _ = attached(tiny, "threshold")
    sources = masked_tensors(model)
    for source in sources.values():
        assert int(source.mask.sum()) == round(0.3 * source.mask.numel())
    with torch.no_grad():
        for source in sources.values():
            source.scores.mul_(2)
    assert all(int(source.mask.sum()) > 0.5 * source.mask.numel() for source in sources.values())


def test_gates_are_drawn_in_training_and_fixed_in_evaluation(tiny):
    model, attachment = attached(tiny, "bernoulli")
    name = next(iter(masked_tensors(model)))
    torch.manual_seed(0)
    model.train()
    drawn = [weights_of(attachment, name) != 0 for _ in range(20)]
    assert not torch.equal(drawn[0], drawn[1])
    share = torch.stack(drawn).float().mean()
    assert float(share) == pytest.approx(0.3, abs=0.05)
    model.eval()
    assert torch.equal(weights_of(attachment, name), weights_of(attachment, name))


def test_iterand_draws_dropped_weights_again(tiny):
    model, attachment = attached(tiny, "iterand")
    source = next(iter(masked_tensors(model).values()))
    before, kept = weights_of(attachment, source.frozen.name).clone(), source.mask.clone()
    attachment.before_step(0, 8)
    assert not source.draw_of.any()
    attachment.before_step(2, 8)
    again = source.draw_of == 1
    assert not (again & kept).any()
    assert float(again[~kept].float().mean()) == pytest.approx(0.1, abs=0.03)
    assert torch.equal(weights_of(attachment, source.frozen.name), before)  # what is kept stays
    with torch.no_grad():
        source.scores.copy_(torch.where(again, 9.0, source.scores))
    stored = source.stored()
    assert stored.draws[f"{source.frozen.name}:draw1"].sum() == min(int(again.sum()), int(kept.sum()))
    assert not (stored.mask & again.numpy()).any()


def attached(config, method, **changes):
    """A tiny model with that method attached, before training."""
    config = config.changed(method=method, **changes)
    model = make_model(config, 9)
    return model, find_method(method)(model, config)


def weights_of(attachment, name):
    """The weights of a matrix as the model computes them now."""
    matrix = next(matrix for matrix in attachment.masked if matrix.name == name)
    module, attribute = matrix.owners[0]
    return getattr(module, attribute).detach()
