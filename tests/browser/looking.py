"""A page of a browser, and what must hold of whatever it shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.karat_viewer.serving import Viewer

__all__ = ["Tab", "faults", "looking", "looking_at_a_file"]

READY = """() => (document.readyState === "complete")"""
# What a page does when its window changes is done before the next frame
DRAWN = """width => new Promise(done => {
  const look = () => requestAnimationFrame(innerWidth === width ? () => requestAnimationFrame(done) : look);
  look();
})"""
WIDTH = "document.documentElement.scrollWidth"
UNFOLD = "document.querySelectorAll('details').forEach(one => { one.open = true; })"
FOREIGN = """() => {
    const bad = [];
    const names = 'iframe frame frameset object embed base applet portal math marquee foreignobject video audio img'
        + ' picture source template plaintext xmp noscript';
    for (const one of document.querySelectorAll('*')) {
        const name = one.tagName.toLowerCase();
        if (names.split(' ').includes(name)) bad.push(one.outerHTML.slice(0, 200));
        if (['style', 'link', 'meta', 'title'].includes(name) && !one.closest('head') && !one.closest('svg'))
            bad.push(one.outerHTML.slice(0, 200));
        if (name === 'script' && one.type !== 'application/json' && !OURS(one)) bad.push(one.outerHTML.slice(0, 200));
        for (const {name: at, value} of one.attributes) {
            if (/^on|^srcdoc$|^ping$/i.test(at)) bad.push(`${name} ${at}=${value}`.slice(0, 200));
            const scheme = /^[\\s\\x00-\\x20]*([a-z][a-z0-9+.-]*):/i.exec(value)?.[1].toLowerCase();
            if (/^(href|src|action|formaction|xlink:href|data|poster|background)$/i.test(at) && scheme
                && !['http', 'https', 'mailto'].includes(scheme) && !(name === 'link' && one.rel === 'icon'))
                bad.push(`${name} ${at}=${value}`.slice(0, 200));
        }
    }
    return bad;
}"""
SERVED = "(one) => one.getAttribute('src')?.startsWith('/static/')"
WITHIN = "(one) => !one.src && one.parentElement !== null && one.closest('main') === null"


class Tab:
    """A page, what it asked for, and what it complained of."""

    def __init__(self, page: Any, home: str) -> None:
        self.page, self.home = page, home
        self.complaints: list[str] = []
        self.abroad: list[str] = []
        page.set_default_timeout(120_000)  # a busy machine is slow, which says nothing of a page
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.context.on("request", self._request)
        page.context.on("page", lambda popup: self.complaints.append(f"opened {popup.url}"))

    def go(self, path: str) -> Any:
        """Opens an address of the viewer, and waits until all that is made meanwhile is there."""
        answer = self.page.goto(f"{self.home}{path}", wait_until="load")
        for _ in range(100):
            if answer is not None and answer.status != 202:  # None: a page that waits has just reloaded by itself
                break
            self.page.wait_for_timeout(200)
            answer = self.page.goto(f"{self.home}{path}", wait_until="load")
        assert answer is not None, path
        assert answer.status == 200, f"{path}: {answer.status}"
        self.settle()
        return self.page

    def settle(self) -> None:
        """Charts are drawn."""
        self.page.wait_for_function(READY, timeout=60_000)

    def unfold(self) -> None:
        """Everything that is folded, open; charts that were in it, drawn."""
        self.page.evaluate(UNFOLD)
        self.page.wait_for_timeout(50)

    def sideways(self, width: int) -> int:
        """By how many pixels the page is wider than a window of this width."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.evaluate(DRAWN, width)
        return int(self.page.evaluate(WIDTH)) - width

    def foreign(self, ours: str = SERVED) -> list[str]:
        """Elements and attributes that no template of ours writes."""
        return list(self.page.evaluate(FOREIGN.replace("OURS", f"({ours})")))

    def hit(self) -> Any:
        """What a text that ran would have set."""
        return self.page.evaluate("window.__hit ?? window.pwned ?? window.top.__hit ?? null")

    def quiet(self) -> None:
        """Nothing was asked for elsewhere, nothing complained, nothing popped up."""
        assert self.abroad == []
        assert self.complaints == []

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if not request.url.startswith(f"{self.home}/") and request.url != "data:," and request.url != self.home:
            self.abroad.append(request.url[:200])


@contextmanager
def looking(browser: Any, viewer: Viewer, *, width: int = 1440, inside: bool = True, **more: Any) -> Iterator[Tab]:
    """A tab that was let in (`inside`). What it showed was quiet to the end."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **more)
    home = f"http://{viewer.home}"
    if inside:
        name, _, value = viewer.cookie.partition("=")
        context.add_cookies([{"name": name, "value": value, "url": home}])
    tab = Tab(context.new_page(), home)
    yield tab
    context.close()
    tab.quiet()


@contextmanager
def looking_at_a_file(browser: Any, path: Path, *, width: int = 1440, **more: Any) -> Iterator[Tab]:
    """A page opened from disk, without a network."""
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, **more)
    tab = Tab(context.new_page(), path.as_uri())
    tab.page.goto(path.as_uri())
    tab.settle()
    yield tab
    context.close()
    tab.quiet()


def faults(page: Any, *, only: tuple[str, ...] = (), but: tuple[str, ...] = ()) -> list[str]:
    """What axe-core calls serious or critical; of `only` these rules where some are named, of none of `but`.

    The marks inside a drawn chart are left out: thousands of shapes in a picture that has a name and a table.
    """
    from axe_playwright_python.sync_playwright import Axe

    options: dict[str, Any] = {"resultTypes": ["violations"], "rules": {rule: {"enabled": False} for rule in but}}
    if only:
        options["runOnly"] = {"type": "rule", "values": list(only)}
    violations = Axe().run(page, context={"exclude": [[".drawing svg *"]]}, options=options).response["violations"]
    return [
        f"{violation['id']} ({violation['impact']}) {node['html'][:160]}: {node['failureSummary'][:300]}"
        for violation in violations
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"][:5]
    ]
