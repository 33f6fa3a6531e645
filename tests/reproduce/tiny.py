"""Settings of the studies for the tests: seconds, and no numbers to quote."""

from dataclasses import replace

from strongticket.reproduce import figure8, images, multimodal, rule
from strongticket.reproduce.searches import TINY as SEARCH
from strongticket.reproduce.valley import ValleySettings

FIGURE8 = figure8.design(
    {"tiny": SEARCH}, SEARCH, (4, 8), ((0.1, -1),), seeds=2, steps=3, powers=(0, 1, 2), width=(0, 1)
)
IMAGES = ValleySettings(
    replace(images.LAPTOP, dim=8, layers=1, patch=4, steps=3, warmup=1), (1.0, 2.0, 4.0), 2
)
MULTIMODAL = ValleySettings(replace(multimodal.LAPTOP, dim=8, patch=4, steps=3, warmup=1), (1.0, 2.0, 4.0), 1)
RULE = rule.RuleSettings(
    rule.design(
        replace(SEARCH, dim=8, steps=2, warmup=1),
        replace(rule.IMAGES, patch=4, batch=8, micro_batch=8, dim=8, steps=2, warmup=1),
        (4, 1),
    ),
    (1.0, 2.0, 4.0),
    1,
)

# name of a study -> its settings
TINY = {
    "figure8": FIGURE8,
    "images": IMAGES,
    "multimodal": MULTIMODAL,
    "rule": RULE,
}
