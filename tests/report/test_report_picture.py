import base64
import io

import matplotlib.image
import numpy as np
import pytest

from strongticket.report.picture import DIVERGING, KEPT, SEQUENTIAL, mask_picture, matrix_picture


def pixels(uri: str) -> np.ndarray:
    """Decode with another reader than our writer: (rows, columns, 3) in 0 … 255."""
    data = base64.b64decode(uri.removeprefix("data:image/png;base64,"))
    return np.rint(matplotlib.image.imread(io.BytesIO(data), format="png")[..., :3] * 255).astype(int)


@pytest.mark.parametrize("shape", [(1, 1), (2, 64), (9, 5), (512, 3)])
def test_mask_picture_shows_every_weight(shape):
    mask = np.random.default_rng(0).random(shape) < 0.4
    picture = mask_picture(mask)
    assert (picture.height, picture.width) == shape
    for uri, colours in ((picture.light, KEPT.light), (picture.dark, KEPT.dark)):
        np.testing.assert_array_equal(pixels(uri), np.where(mask[..., None], colours[1], colours[0]))


def test_large_masks_are_averaged_in_blocks():
    mask = np.zeros((1025, 600), dtype=bool)
    mask[:3, :2] = True  # blocks of 3 × 2: exactly the first one is kept
    picture = mask_picture(mask)
    assert (picture.height, picture.width) == (342, 300)
    image = pixels(picture.light)
    np.testing.assert_array_equal(image[0, 0], KEPT.light[1])
    np.testing.assert_array_equal(image[1:].reshape(-1, 3), np.broadcast_to(KEPT.light[0], (341 * 300, 3)))


def test_matrix_colours_follow_the_shared_scale():
    image = pixels(matrix_picture(np.array([[-2.0, 0.0, 2.0, 5.0]]), -2, 2, DIVERGING).light)
    np.testing.assert_allclose(image[0], [DIVERGING.light[i] for i in (0, 2, 4, 4)], atol=2)
    image = pixels(matrix_picture(np.zeros((1, 1)), 0, 0, SEQUENTIAL).dark)
    np.testing.assert_array_equal(image[0, 0], SEQUENTIAL.dark[0])
