from tests.browser import browser  # noqa: F401 (a fixture)
