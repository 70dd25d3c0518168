"""The page of a report in a real browser: it loads without errors or requests, and can be pointed at and brushed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bounce import Binary, Categorical, Integer, Permutation, Real, Space, Study
from bounce.cli.pictures import _Making
from bounce.report.content import Source, content
from bounce.report.document import document
from bounce.report.watching import Server, Watched
from browser import Browser, browser, missing

pytestmark = [
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.xdist_group("browser"),
]
EVIL = "</script><img src=x onerror=document.title='broken'>"
SPACE = Space(
    [
        Real("rate", 1e-4, 1, log=True),
        Integer("n", 1, 9),
        Categorical("c", ["a", "b", EVIL]),
        Binary("b"),
        Real(EVIL, 0, 1),
    ]
)
TIP = "const t = document.getElementById('tip'); return t.hidden ? '' : t.textContent"
SELECTED = "return document.getElementById('selection').textContent"


def _box(window: Browser, selector: str) -> dict[str, float]:
    """Return where an element is, after it was scrolled to and drawn."""
    window.run(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center', behavior: 'instant'}})")
    window.wait_for(f"return document.querySelector({selector!r} + ' svg').children.length")
    found: dict[str, float] = window.run(
        f"const b = document.querySelector({selector!r}).getBoundingClientRect();"
        "return {x: b.left, y: b.top, w: b.width, h: b.height}"
    )
    return found


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        found.open("about:blank")
        yield found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "lab.db"
    points: list[dict[str, Any]] = SPACE.decode(SPACE.sample(40, rng=np.random.default_rng(0)))
    with Study.open(path, space=SPACE, budget=60, seed=0) as study:
        study.add(points, [np.log10(p["rate"]) ** 2 + float(p["n"]) * (p["c"] == "a") for p in points], sems=0.2)
        study.fail(study.ask(2), f"boom {EVIL}")
        study.correct(1, 3.0, reason=EVIL)
    return path


@pytest.fixture(scope="module")
def page(file: Path) -> Path:
    with Study.open(file) as study:
        source = Source(EVIL, study, None, lambda entry: EVIL, ["bounce ask lab.db"])
        out = file.with_suffix(".html")
        out.write_text(document(content(source, study.importance())), encoding="utf-8")
    return out


@pytest.fixture
def opened(window: Browser, page: Path) -> Browser:
    window.size(1200, 900)
    window.requests()
    window.errors()
    window.open(page.as_uri())
    return window


def test_the_page_loads_without_errors_or_requests_to_anywhere(opened: Browser, page: Path) -> None:
    sections = opened.run("return [...document.querySelectorAll('section')].map(s => s.id)")
    assert sections == [
        "progress", "best", "importance", "effects", "trials", "search", "history", "resume", "versions",
    ]  # fmt: skip
    opened.run("for (const s of document.querySelectorAll('.plot')) s.scrollIntoView()")
    for place in range(0, opened.run("return document.documentElement.scrollHeight"), 500):
        opened.run(f"scrollTo(0, {place})")
    opened.wait_for("return [...document.querySelectorAll('.plot svg')].filter(s => s.children.length).length > 10")
    assert opened.errors() == []
    assert opened.requests() == [page.as_uri()]


def test_texts_of_users_are_shown_as_they_are(opened: Browser) -> None:
    assert opened.run("return document.querySelector('h1').textContent") == EVIL
    assert opened.run("return document.title").startswith(EVIL)
    assert opened.run("return document.querySelectorAll('main img, header img').length") == 0
    names = opened.run("return [...document.querySelectorAll('#best td:first-child')].map(t => t.textContent)")
    assert EVIL in names
    assert EVIL in opened.run("return document.getElementById('history').textContent")


def test_pointing_at_a_trial_shows_it(opened: Browser) -> None:
    box = _box(opened, "#progress .plot")
    assert opened.run(TIP) == ""
    found = ""
    for step in range(20, int(box["h"]) - 20, 12):  # up one column of the picture, until a point is near
        opened.mouse("mouseMoved", box["x"] + box["w"] / 2, box["y"] + step)
        found = opened.run(TIP)
        if found:
            break
    assert found.startswith("Trial ")
    assert "rate = " in found
    assert "±" in found
    opened.wait_for("return document.querySelector('#progress .hovered') !== null")
    opened.mouse("mouseMoved", 2, 2)
    assert opened.run(TIP) == ""


def test_the_keyboard_moves_from_trial_to_trial(opened: Browser) -> None:
    _box(opened, "#progress .plot")
    opened.run("document.querySelector('#progress .plot').focus({preventScroll: true})")
    opened.press("ArrowRight")
    assert opened.run(TIP).startswith("Trial 0:")
    opened.press("ArrowRight")
    assert opened.run(TIP).startswith("Trial 1: 3")
    opened.press("End")
    assert "boom" in opened.run(TIP)
    opened.press("Escape")
    assert opened.run(TIP) == ""


def test_a_range_of_an_axis_selects_trials_everywhere(opened: Browser) -> None:
    assert opened.run(SELECTED).startswith("Nothing is selected")
    box = _box(opened, "#trials .plot")
    x = box["x"] + 40  # the first axis
    opened.drag((x, box["y"] + box["h"] - 20), (x, box["y"] + box["h"] * 0.5))
    found = opened.run(SELECTED)
    count = int(found.split()[0])
    assert "of 40 trials selected" in found
    assert 0 < count < 40
    opened.wait_for("return document.querySelectorAll('#trials .brush').length >= 1")
    assert opened.run("return document.querySelectorAll('#chosen tbody tr').length") == min(10, count)
    # a second one narrows the selection, on the picture of a parameter
    slice_box = _box(opened, "#trials .grid .plot")
    middle = slice_box["y"] + 60
    opened.drag((slice_box["x"] + 60, middle), (slice_box["x"] + 120, middle))
    assert int(opened.run(SELECTED).split()[0]) <= count
    opened.run("[...document.querySelectorAll('#trials button')].at(-1).click()")
    assert opened.run(SELECTED).startswith("Nothing is selected")
    assert opened.errors() == []


def test_the_keyboard_selects_a_range(opened: Browser) -> None:
    opened.run("document.querySelector('#trials button').focus()")
    opened.press("Enter")
    first = opened.run(SELECTED)
    assert "trials selected" in first
    opened.press("ArrowDown")
    assert opened.run(SELECTED) != first
    opened.press("Escape")
    assert opened.run(SELECTED).startswith("Nothing is selected")


def test_parameters_can_be_chosen(opened: Browser) -> None:
    before = opened.run("return document.querySelectorAll('#trials .grid > div').length")
    opened.run("document.querySelector('details.select').open = true")
    opened.wait_for("return document.querySelectorAll('.choose input').length > 0")
    opened.run("document.querySelector('.choose input').click()")
    assert opened.run("return document.querySelectorAll('#trials .grid > div').length") == before - 1
    assert opened.errors() == []


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_fits_a_phone_and_both_colours(opened: Browser, width: int, dark: bool) -> None:
    opened.size(width, 844, dark=dark)
    assert opened.run("return document.documentElement.scrollWidth") <= width
    ground = opened.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 150) == dark


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1200, True)])
def test_on_paper_pictures_have_the_width_of_the_page_and_are_ink_on_white(
    opened: Browser, page: Path, width: int, dark: bool
) -> None:
    opened.size(width, 844, dark=dark)
    opened.open(page.as_uri())
    for _ in range(2):
        opened.run("dispatchEvent(new Event('beforeprint'))")
        found = opened.run(
            "return [...document.querySelectorAll('.plot')].map(box => [box.clientWidth,"
            " box.querySelector('canvas').width, +box.querySelector('svg').getAttribute('viewBox').split(' ')[2]])"
        )
        assert len(found) > 15
        assert all(box == view and canvas == 3 * box for box, canvas, view in found)
        assert max(box for box, _, _ in found) == 690
        assert opened.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        opened.run("dispatchEvent(new Event('afterprint'))")
        opened.wait_for(f"return document.querySelector('#progress svg').viewBox.baseVal.width === {width - 32}")
    ground = opened.run("return getComputedStyle(document.body).backgroundColor")
    assert (ground != "rgb(255, 255, 255)") == dark
    assert opened.errors() == []


def test_on_paper_the_settings_of_the_best_trial_are_unfolded(window: Browser, tmp_path: Path) -> None:
    study = Study.open(space=Space([Binary(f"x{i}") for i in range(30)]), budget=10, seed=0)
    study.tell(study.ask(2), [1.0, 2.0])
    out = tmp_path / "many.html"
    out.write_text(document(content(Source("many", study, None, str), None)), encoding="utf-8")
    window.open(out.as_uri())
    unfolded = "return document.querySelector('#best details').open"
    assert not window.run(unfolded)
    assert window.run(f"dispatchEvent(new Event('beforeprint')); {unfolded}")
    assert not window.run(f"dispatchEvent(new Event('afterprint')); {unfolded}")


def test_outcomes_are_shown_with_their_limits(window: Browser, tmp_path: Path) -> None:
    space = Space([Real("x", 0, 1)], constraints=["x <= 0.9"], outcomes=["mass <= 2"])
    study = Study.open(space=space, budget=10, seed=0)
    x = np.linspace(0.05, 0.85, 10).tolist()
    study.add([{"x": each} for each in x], x, constraints=[{"mass": 4 * each} for each in x])
    out = tmp_path / "limits.html"
    out.write_text(document(content(Source("limits", study, None, str), None)), encoding="utf-8")
    window.size(1200, 900)
    window.open(out.as_uri())
    assert "mass <= 2.00.2kept" in window.run("return document.getElementById('best').textContent")
    assert "x <= 0.9" in window.run("return document.getElementById('versions').textContent")
    for place in ("#trials .wide", "#trials .grid > :last-child"):
        _box(window, f"{place} .plot")
        assert window.run(f"return document.querySelectorAll('{place} .limit').length") == 1
    window.run("document.querySelector('#trials button[aria-label=\"Select a range of mass\"]').focus()")
    window.press("Enter")
    assert window.run(SELECTED) == "5 of 10 trials selected: mass from 1.8 to 3.4"
    window.run("document.querySelector('#progress .plot').focus()")
    window.press("ArrowRight")
    assert "mass = 0.2" in window.run(TIP)
    assert window.errors() == []


def test_the_effect_of_an_order_is_drawn_and_long_labels_do_not_meet(window: Browser, tmp_path: Path) -> None:
    choices = [f"a rather long name {i}" for i in range(4)]
    space = Space([Permutation("order", ["cut", "drill", "paint"]), Categorical("c", choices)])
    study = Study.open(space=space, budget=30, seed=0)
    points = space.decode(space.sample(20, rng=np.random.default_rng(0)))
    study.add(points, [float(point["order"][0] == "drill") for point in points])
    out = tmp_path / "order.html"
    out.write_text(document(content(Source("order", study, None, str), study.importance())), encoding="utf-8")
    window.size(1200, 900)
    window.open(out.as_uri())
    heads = window.run("return [...document.querySelectorAll('#effects h3')].map(h => h.textContent)")
    assert {"order: cut before drill", "order: drill before paint", "c"} <= set(heads)
    for picture in ("#effects", "#trials"):
        cell = f"[...document.querySelectorAll('{picture} .grid > div')].find(d => d.textContent.startsWith('c'))"
        window.run(f"{cell}.scrollIntoView()")
        window.wait_for(f"return {cell}.querySelector('svg').children.length")
        boxes = window.run(
            f"return [...{cell}.querySelectorAll('text')].filter(t => t.textContent.startsWith('a '))"
            ".map(t => t.getBoundingClientRect()).map(b => [b.left, b.right])"
        )
        assert len(boxes) == 4
        assert all(one[1] < other[0] for one, other in pairwise(boxes))
    assert window.errors() == []


@pytest.mark.parametrize("width", [1200, 390])
def test_the_labels_of_an_axis_tell_its_values_apart_and_do_not_meet(
    window: Browser, tmp_path: Path, width: int
) -> None:
    names = [f"models/resnet-{depth}-pretrained-v{i}" for depth in (18, 34, 101) for i in (1, 2, 3)]
    space = Space(
        [
            Integer("count", -1000000, -999990),
            Real("time", 1.7e9, 1.7e9 + 100),
            Real("huge", 1e-300, 1e300, log=True),
            Real("close", 1e5, 1e5 + 1, log=True),
            Categorical("name", names),
        ]
    )
    study = Study.open(space=space, budget=30, seed=0)
    points = space.decode(space.sample(20, rng=np.random.default_rng(0)))
    for trial, point in zip(study.ask(20), points, strict=True):
        study.tell(trial, -2000001.0 - 999990 - point["count"], point=point)
    out = tmp_path / "labels.html"
    out.write_text(document(content(Source("labels", study, None, str), None)), encoding="utf-8")
    window.size(width, 900)
    window.open(out.as_uri())
    assert "-2000001" in window.run("return document.querySelector('#search table').textContent")
    axes: dict[str, list[str]] = {}
    for name in ("count", "time", "huge", "close", "name"):
        cell = f"[...document.querySelectorAll('#trials .grid > div')].find(d => d.textContent.startsWith('{name}'))"
        window.run(f"{cell}.scrollIntoView()")
        window.wait_for(f"return {cell}.querySelector('svg').children.length")
        found = window.run(
            f"const bottom = {cell}.querySelector('svg').getBoundingClientRect().bottom - 24;"
            f"return [...{cell}.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()])"
            ".map(([text, b]) => [text, b.left, b.right, b.top > bottom])"
        )
        across = [(text, left, right) for text, left, right, below in found if below]
        assert all(one[2] <= other[1] for one, other in pairwise(across)), across
        axes[name] = [text for text, *_ in across]
        assert len(set(axes[name])) == len(axes[name]) >= 2
        values = [text for text, *_, below in found if not below]
        assert len(set(values)) == len(values) >= 2
    assert axes["count"] == ["-1000000", "-999995", "-999990"]
    assert axes["time"][0] == "1700000000"
    assert axes["huge"][0] == "1e-300"
    assert window.errors() == []


def test_without_a_value_there_is_no_axis_of_values(window: Browser, tmp_path: Path) -> None:
    study = Study.open(space=Space([Real("x", 0, 1)]), budget=9, seed=0)
    study.fail(study.ask(3), "boom")
    out = tmp_path / "failed.html"
    out.write_text(document(content(Source("failed", study, None, str), None)), encoding="utf-8")
    window.size(1200, 900)
    window.open(out.as_uri())
    _box(window, "#progress .plot")
    assert window.run("return [...document.querySelectorAll('#progress text')].map(t => t.textContent)") == [
        "0", "1", "2",
    ]  # fmt: skip
    assert window.run("return [...document.querySelectorAll('#progress .key')].map(t => t.textContent)") == ["failed"]
    assert window.errors() == []


@pytest.mark.slow
def test_a_large_study_is_limited_to_what_can_be_used(window: Browser, tmp_path: Path) -> None:
    space = Space([Integer(f"x{i}", 0, 50) for i in range(200)])
    study = Study.open(space=space, budget=10, seed=0)
    codes = space.sample(5000, rng=np.random.default_rng(0))
    study.add(space.decode(codes), codes[:, 0].tolist())
    out = tmp_path / "large.html"
    out.write_text(document(content(Source("large", study, None, str), None)), encoding="utf-8")
    assert out.stat().st_size < 8_000_000
    window.size(1200, 900)
    window.open(out.as_uri())
    assert window.run("return document.querySelectorAll('#trials .grid > div').length") == 12
    assert window.run("return document.querySelectorAll('*').length") < 2000
    box = _box(window, "#trials .plot")
    x = box["x"] + 40
    window.drag((x, box["y"] + box["h"] - 20), (x, box["y"] + box["h"] * 0.5))
    assert "of 5000 trials selected" in window.run(SELECTED)
    assert window.errors() == []


def test_a_watched_page_follows_the_study(window: Browser, tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    points: list[dict[str, Any]] = SPACE.decode(SPACE.sample(4, rng=np.random.default_rng(0)))
    with Study.open(path, space=SPACE, budget=9, seed=0) as study:
        study.add(points[:3], [3.0, 2.0, 5.0])
        with Server(("127.0.0.1", 0), Watched(path, _Making(path, None))) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                window.requests()
                window.open(server.url)
                assert window.run("return document.querySelector('.facts b').textContent") == "2"
                study.add(points[3:], [0.5])
                window.wait_for("return document.querySelector('.facts b').textContent === '0.5'")
                assert {address.split("/", 3)[3] for address in window.requests()} == {"", "content.json"}
                assert window.errors() == []
                window.open("about:blank")
            finally:
                server.shutdown()
                thread.join()
