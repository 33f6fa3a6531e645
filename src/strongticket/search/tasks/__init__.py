"""Tasks by name, one file each: what `--task` takes. A task is a function (config) -> Task."""

from __future__ import annotations

from strongticket.search.config import SearchConfig
from strongticket.search.tasks.classification import classification
from strongticket.search.tasks.images import images
from strongticket.search.tasks.language import language
from strongticket.search.tasks.task import Task as Task
from strongticket.search.tasks.task import model_loss as model_loss

_TASKS = {"language": language, "classification": classification, "images": images}


def load_task(config: SearchConfig) -> Task:
    """The task that the settings name, with its data."""
    return _TASKS[config.task](config)
