import io

import matplotlib.image
import numpy as np
import pytest

from strongticket.hf._picture import _DROPPED, _KEPT, mask_png


@pytest.mark.parametrize("shape", [(1, 1), (2, 64), (9, 5), (512, 3)])
def test_the_picture_shows_every_weight(shape):
    """Decoded by another reader than our writer."""
    mask = np.random.default_rng(0).random(shape) < 0.4
    pixels = matplotlib.image.imread(io.BytesIO(mask_png(mask)), format="png")[..., :3]
    np.testing.assert_array_equal(np.rint(pixels * 255), np.where(mask[..., None], _KEPT, _DROPPED))
