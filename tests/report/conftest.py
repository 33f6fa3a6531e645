import browser as chromium
import pytest


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if chromium.CHROMIUM is None:
        pytest.skip(
            "no chromium on this machine: the page is not looked at in a browser (apt install chromium)"
        )
    tab = chromium.Browser(tmp_path_factory.mktemp("profile"))
    yield tab
    tab.close()
