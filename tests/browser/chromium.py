"""Debian's Chromium, without a screen."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

_COMMANDS = ("chromium", "chromedriver")
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # it must start as root too, and sees pages of this machine alone
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--window-size=1500,1320",
)


def missing() -> str | None:
    """What this machine lacks to show a page, and how to get it; None if nothing."""
    lacking = [command for command in _COMMANDS if not shutil.which(command)]
    return f"no {', no '.join(lacking)} here (Debian: apt-get install chromium chromium-driver)" if lacking else None


@contextmanager
def chromium(profile: Path) -> Generator[webdriver.Chrome]:
    """A browser with a profile of its own. It reaches nothing but 127.0.0.1."""
    options = Options()
    browser, driver_command = map(shutil.which, _COMMANDS)
    options.binary_location = browser or ""
    for argument in (*_ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options, service=Service(driver_command))
    try:
        driver.set_page_load_timeout(60)
        yield driver
    finally:
        driver.quit()
