"""Temporal's Web UI in a browser, used as a person uses it: what is shown is read, copied, pasted and clicked.

Everything here blocks, and every wait has a deadline: TimeoutException says what was not shown.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    StaleElementReferenceException,
)
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

T = TypeVar("T")

_DEADLINE = 90.0
_TEXTS = "return [...document.querySelectorAll(arguments[0])].map(found => found.innerText)"
_MENU = "#content [aria-controls=workflow-actions]"
_MENU_ITEM = "[data-testid=update-button]"
_FORM = "[data-testid=update-confirmation-modal]"
_SELECT = "[data-testid=update-select-button]"
_TITLE = f"{_FORM} #modal-title-update-confirmation-modal"
_CHOSEN = "[data-testid=update-select]"
_SUBMIT = "[data-testid=confirm-modal-button]"
_EDITOR = ".cm-content"


class WorkflowPage:
    """The pages of one workflow."""

    def __init__(self, driver: webdriver.Chrome, ui_url: str, workflow_id: str) -> None:
        self._driver = driver
        self._url = f"{ui_url}/namespaces/default/workflows/{workflow_id}"

    def open(self) -> None:
        self._driver.get(self._url)

    # ---- what it shows

    def wait_for_bar(self, label: str) -> None:
        """Until the timeline has a bar whose label holds this."""
        self._click("[data-testid=timeline-tab]")
        self._until(lambda: any(label in bar for bar in self._bars()), f"no bar {label!r} on the timeline")

    def metadata(self) -> tuple[str, str, str]:
        """Summary, details and current details of the tab User Metadata, as text; empty where there are none."""
        self._click("[data-testid=user-metadata-tab]")
        self._until(lambda: len(self._frames()) == 3, "no three frames on the tab User Metadata")
        summary, details, current = (self._text_of_frame(number) for number in range(3))
        return summary, details, current

    def copy_json(self, holding: str) -> str:
        """Copy the line of JSON under current details that holds this: a triple click and Ctrl+C. Returns it."""
        self._driver.switch_to.frame(self._frames()[2])
        try:
            block = next(block for block in self._driver.find_elements(By.TAG_NAME, "pre") if holding in block.text)
            line = block.text
            ActionChains(self._driver).move_to_element(block).click().click().click().perform()
            self._press(Keys.CONTROL, "c")
        finally:
            self._driver.switch_to.default_content()
        return line

    # ---- the form "Send an Update"

    def open_form(self, update: str) -> str:
        """Open the form and choose the update there; returns the choice as it was shown, with its description."""
        self._until(lambda: self._shown(_MENU_ITEM) or self._open_menu(), "no item Send an Update in More Actions")
        self._click(_MENU_ITEM)
        choice = self._until(lambda: self._choice(update) or self._open_choices(), f"no update {update!r} to choose")
        shown = choice.text
        choice.click()
        self._until(lambda: self._chosen() == update, f"the form does not show {update!r} as chosen")
        return shown

    def paste(self) -> None:
        """Put what was copied into the form, in place of what is there."""
        self._clear()
        self._press(Keys.CONTROL, "v")
        self._leave_editor()

    def write(self, text: str) -> None:
        """Type this into the form, in place of what is there."""
        self._clear()
        self._press(text)
        self._leave_editor()

    def submit(self) -> None:
        self._click(f"{_FORM} {_SUBMIT}")

    def wait_until_sent(self) -> None:
        """Until the form is gone, as it is after a request that was not refused."""
        self._until(lambda: not self._shown(_FORM), "the form is still there")

    def wait_for_refusal(self, text: str) -> str:
        """Until the form says this; returns all it says."""
        self._until(lambda: text in self.form_text(), f"the form does not say {text!r}")
        return self.form_text()

    def form_text(self) -> str:
        form = self._shown(_FORM)
        return form.text if form else ""

    # ---- pictures

    def picture(self, path: Path, *, down_to: str) -> None:
        """The page without its frame of navigation, down to the last element that matches this selector."""
        content, last = self._driver.find_element(By.ID, "content"), self._all(down_to)[-1]
        self._save(path, content, height=_bottom(last) + 24 - _top(content))

    def picture_of_form(self, path: Path) -> None:
        form = self._shown(_FORM)
        assert form
        self._save(path, form, height=_bottom(form) - _top(form))

    def _save(self, path: Path, element: WebElement, *, height: float) -> None:
        clip: dict[str, float] = {**element.location, "width": element.size["width"], "height": height, "scale": 1}
        shot = self._driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})
        path.write_bytes(base64.b64decode(shot["data"]))

    # ---- waiting, finding, pressing

    def _until(self, true: Callable[[], T | None], otherwise: str) -> T:
        again = (StaleElementReferenceException, ElementClickInterceptedException, ElementNotInteractableException)
        wait = WebDriverWait(self._driver, _DEADLINE, poll_frequency=0.2, ignored_exceptions=again)
        found = wait.until(lambda _: true(), otherwise)
        assert found is not None
        return found

    def _all(self, selector: str) -> list[WebElement]:
        return [found for found in self._driver.find_elements(By.CSS_SELECTOR, selector) if found.is_displayed()]

    def _shown(self, selector: str) -> WebElement | None:
        return next(iter(self._all(selector)), None)

    def _bars(self) -> list[str]:
        return cast("list[str]", self._driver.execute_script(_TEXTS, "#content button"))

    def _frames(self) -> list[WebElement]:
        return self._all("#content iframe")

    def _text_of_frame(self, number: int) -> str:
        self._driver.switch_to.frame(self._frames()[number])
        try:
            loaded = f"frame {number} of User Metadata does not load"
            self._until(lambda: self._driver.execute_script("return document.readyState") == "complete", loaded)
            return self._driver.find_element(By.TAG_NAME, "body").text.strip()
        finally:
            self._driver.switch_to.default_content()

    def _choice(self, update: str) -> WebElement | None:
        choices = self._all(f"{_FORM} [role=option]")
        return next((choice for choice in choices if choice.text.split("\n")[0] == update), None)

    def _chosen(self) -> str | None:
        form = self._shown(_FORM)
        return form.find_element(By.CSS_SELECTOR, _CHOSEN).get_attribute("value") if form else None

    def _open_choices(self) -> None:
        self._expand(self._shown(f"{_FORM} {_SELECT}"))

    def _open_menu(self) -> None:
        self._expand(self._shown(_MENU))

    def _expand(self, button: WebElement | None) -> None:
        """A menu that opens slowly is not closed again."""
        if button and button.get_attribute("aria-expanded") != "true":
            button.click()

    def _click(self, selector: str) -> None:
        self._until(lambda: self._click_once(selector), f"nothing to click at {selector}")

    def _click_once(self, selector: str) -> bool:
        found = self._shown(selector)
        if found:
            found.click()
        return bool(found)

    def _press(self, *keys: str) -> None:
        chain = ActionChains(self._driver)
        if keys[0] == Keys.CONTROL:
            chain.key_down(Keys.CONTROL).send_keys(*keys[1:]).key_up(Keys.CONTROL).perform()
        else:
            chain.send_keys(*keys).perform()

    def _editor_text(self) -> str:
        form = self._shown(_FORM)
        return form.find_element(By.CSS_SELECTOR, _EDITOR).text.strip() if form else ""

    def _clear(self) -> None:
        self._click(f"{_FORM} {_EDITOR}")
        self._press(Keys.CONTROL, "a")
        self._press(Keys.DELETE)
        self._until(lambda: not self._editor_text(), "the editor is not empty")

    def _leave_editor(self) -> None:
        """The form lays its JSON out when the editor is left, and Submit moves: a click before that may miss."""
        self._until(self._editor_text, "nothing stands in the editor")
        self._click(_TITLE)
        self._until(lambda: "\n" in self._editor_text(), "the form does not lay its JSON out")


def _top(element: WebElement) -> float:
    return cast("float", element.location["y"])


def _bottom(element: WebElement) -> float:
    return _top(element) + cast("float", element.size["height"])
