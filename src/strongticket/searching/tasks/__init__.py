"""Tasks by name, one file each: what `--task` takes. A task is a function (config) -> Task."""

from __future__ import annotations

from strongticket.searching.config import SearchConfig
from strongticket.searching.tasks.classification import classification
from strongticket.searching.tasks.images import images
from strongticket.searching.tasks.language import language
from strongticket.searching.tasks.task import Task as Task
from strongticket.searching.tasks.task import model_loss as model_loss

_TASKS = {"language": language, "classification": classification, "images": images}


def load_task(config: SearchConfig) -> Task:
    """The task that the settings name, with its data."""
    return _TASKS[config.task.task](config)
