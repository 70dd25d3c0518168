"""The report: what it contains, that no text of a user becomes markup, its limits, and the server that watches."""

from __future__ import annotations

import base64
import http.client
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from bounce import Binary, Categorical, Integer, Ordinal, Permutation, Real, Space, Study, Trial
from bounce.cli import app
from bounce.cli.pictures import _Making
from bounce.errors import BounceError
from bounce.report import content as contents
from bounce.report.content import Source, content
from bounce.report.document import data_block, document, finite
from bounce.report.watching import Server, Watched

EVIL = "</script><script>alert(1)</script>{{script}}"
SPACE = Space(
    [
        Real("rate", 1e-4, 1, log=True),
        Integer("n", 1, 9),
        Integer("large", 0, 10**10),
        Categorical("c", ["a", EVIL, None, True]),
        Ordinal("o", [1, 2, 4]),
        Binary("b"),
        Real(EVIL, 0, 1),
    ]
)


def _points(n: int, seed: int = 0) -> list[dict[str, Any]]:
    return SPACE.decode(SPACE.sample(n, rng=np.random.default_rng(seed)))


def _value(point: dict[str, Any]) -> float:
    return float(np.log10(point["rate"]) ** 2 + point["n"] * (point["c"] == "a"))


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    with Study.open(tmp_path / "lab.db", space=SPACE, budget=30, seed=0) as opened:
        points = _points(24)
        opened.add(points, [_value(point) for point in points], sems=0.25)
        opened.fail(opened.ask(2), f"boom {EVIL}")
        opened.correct(3, 2.5, reason=EVIL)
        opened.note(4, EVIL)
        yield opened


def _content(study: Study, **changes: Any) -> dict[str, Any]:
    source = replace(Source(EVIL, study, None, lambda entry: EVIL), **changes)
    return content(source, study.importance())


def _numbers(column: dict[str, str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(column["data"]), dtype="<" + column["kind"])


class _Page(HTMLParser):
    """The tags of a page, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.scripts: list[str] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts[-1] += data


# What it contains


def test_the_columns_hold_the_trials_exactly(study: Study) -> None:
    found = _content(study)
    trials = study.trials
    columns = found["trials"]["columns"]
    assert _numbers(columns["id"]).tolist() == [trial.id for trial in trials]
    values = _numbers(columns["value"])
    assert [None if np.isnan(v) else v for v in values] == [trial.value for trial in trials]
    assert [found["states"][i] for i in _numbers(columns["state"])] == [trial.state for trial in trials]
    assert _numbers(columns["sem"])[0] == 0.25
    assert "infeasible" not in columns
    by_name = {parameter["name"]: parameter for parameter in found["parameters"]}
    assert set(by_name) == {parameter.name for parameter in SPACE.parameters}
    assert _numbers(by_name["large"]["values"]).tolist() == [trial.point["large"] for trial in trials]
    np.testing.assert_allclose(
        _numbers(by_name["rate"]["values"]), [float(trial.point["rate"] or 0) for trial in trials], rtol=1e-6
    )
    assert by_name["c"]["choices"] == ["a", EVIL, "null", "true"]
    codes = _numbers(by_name["c"]["values"])
    assert [["a", EVIL, None, True][i] for i in codes] == [trial.point["c"] for trial in trials]
    assert by_name["b"]["choices"] == ["false", "true"]


def test_it_says_what_failed_what_was_corrected_and_how_to_continue(study: Study) -> None:
    found = _content(study, resume=["bounce ask lab.db"])
    failed = [str(trial.id) for trial in study.trials if trial.state == "failed"]
    assert {i: found["trials"]["errors"][at] for i, at in found["trials"]["error_of"].items()} == dict.fromkeys(
        failed, f"boom {EVIL}"
    )
    assert found["trials"]["notes"] == {"4": EVIL}
    assert [row[1:] for row in found["history"]][-2:] == [["correct", 3, EVIL, EVIL], ["note", 4, EVIL, ""]]
    assert found["resume"] == ["bounce ask lab.db"]
    assert dict(found["options"])["seed"] == "0"
    assert {name for name, _ in found["versions"]} >= {"bounce", "python", "numpy", "scipy"}
    assert found["status"]["failed"] == 2
    best = study.best
    assert best is not None
    assert (found["best"]["id"], found["best"]["value"]) == (best.id, repr(best.value))
    assert dict(found["best"]["rows"])["n"] == str(best.point["n"])
    assert found["best"]["command"] is None


def test_the_most_important_parameter_comes_first(study: Study) -> None:
    found = _content(study)
    importance = study.importance()
    assert importance is not None
    assert [each["name"] for each in found["parameters"]] == [each.name for each in importance.parameters]


def test_a_permutation_that_matters_comes_first_and_counts_as_one_parameter() -> None:
    space = Space([*(Real(f"x{i}", 0, 1) for i in range(3)), Permutation("order", ["cut", "drill", "paint", "sand"])])
    study = Study.open(space=space, budget=30, seed=0)
    points = space.decode(space.sample(30, rng=np.random.default_rng(0)))
    study.add(points, [float(point["order"].index("drill")) for point in points])
    found = _content(study)
    assert found["parameters"][0]["name"] == "order"
    assert [each["name"] for each in found["parameters"]].count("order") == 1
    assert found["status"]["parameters"] == 4


@pytest.mark.parametrize(
    "real",
    [
        Real("t", 1.7e9, 1.7e9 + 100),
        Real("h", 1e-60, 1e-50, log=True),
        Real("h", 1e-300, 1e300, log=True),
        Real("z", 0, 1e-50),
        Real("w", -1e200, 1e200),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("error")
def test_reals_that_four_bytes_cannot_hold_have_eight(real: Real) -> None:
    space = Space([real, Real("usual", 1e-5, 1e3, log=True)])
    study = Study.open(space=space, budget=30, seed=0)
    points = space.decode(space.sample(20, rng=np.random.default_rng(0)))
    study.add(points, list(range(20)))
    long, usual = (each["values"] for each in content(Source("long", study, None, str), None)["parameters"])
    assert _numbers(long).tolist() == [trial.point[real.name] for trial in study.trials]
    assert usual["kind"] == "f4"


def test_a_study_without_values_has_a_report(tmp_path: Path) -> None:
    with Study.open(tmp_path / "new.db", space=SPACE, budget=30, seed=0) as new:
        found = _content(new)
    assert found["best"] is None
    assert found["importance"] is None
    assert len(found["parameters"]) == len(SPACE)
    document(found)


def test_the_best_settings_become_a_command(tmp_path: Path) -> None:
    spec = tmp_path / "net.toml"
    spec.write_text(
        'budget = 20\ncommand = ["train", "--rate", "{rate}", "--name", "{kind}"]\n'
        '[[parameters]]\nname = "rate"\ntype = "real"\nlow = 0\nhigh = 1\n'
        '[[parameters]]\nname = "kind"\ntype = "categorical"\nchoices = ["a b", "c"]\n'
    )
    space = Space([Real("rate", 0, 1), Categorical("kind", ["a b", "c"])])
    with Study.open(tmp_path / "net.db", space=space, budget=20, seed=0) as opened:
        opened.add([{"rate": 0.5, "kind": "a b"}, {"rate": 0.25, "kind": "c"}], [1.0, 2.0])
    result = CliRunner().invoke(app, ["report", str(spec), "--out", str(tmp_path / "net.html")])
    assert result.exit_code == 0, result.output
    page = _Page((tmp_path / "net.html").read_text())
    found = json.loads(page.scripts[0])
    assert found["best"]["command"] == "train --rate 0.5 --name 'a b'"
    assert found["resume"] == [f"bounce run {spec}"]
    again = CliRunner().invoke(app, ["report", str(spec), "--out", str(tmp_path / "net.html")])
    assert again.exit_code != 0
    assert "already exists" in str(again.exception)


def test_outcomes_are_columns_with_their_limits() -> None:
    space = Space([Real("x", 0, 1)], constraints=["x <= 0.9"], outcomes=["mass <= 2", "1 <= ph <= 3"])
    study = Study.open(space=space, budget=9, seed=0)
    measured = [{"mass": 5.0, "ph": 2.0}, {"mass": 1.0, "ph": 2.0}]
    study.add([{"x": 0.1}, {"x": 0.2}], [1.0, 3.0], constraints=measured)
    study.ask()
    found = content(Source("lab", study, None, str), None)
    assert found["constraints"] == ["x <= 0.9"]
    assert found["best"]["outcomes"] == [["mass <= 2.0", "1.0", "kept"], ["1.0 <= ph <= 3.0", "2.0", "kept"]]
    mass, ph = found["outcomes"]
    assert (mass["name"], mass["low"], mass["high"], mass["limits"]) == ("mass", 1.0, 5.0, [2.0])
    np.testing.assert_array_equal(_numbers(mass["values"]), [5.0, 1.0, np.nan])
    assert (ph["low"], ph["high"], ph["limits"]) == (1.0, 3.0, [1.0, 3.0])


@pytest.mark.parametrize("measured", [2.0, 1e308, -1e308])
def test_the_range_of_an_outcome_is_a_range(measured: float) -> None:
    study = Study.open(space=Space([Real("x", 0, 1)], outcomes=["mass <= 2"]), budget=9, seed=0)
    study.add([{"x": 0.1}], [1.0], constraints=[{"mass": measured}])
    (mass,) = content(Source("lab", study, None, str), None)["outcomes"]
    assert 0 < mass["high"] - mass["low"] < np.inf


def test_infeasible_trials_are_marked_where_trials_know_it() -> None:
    judged = [Trial(0, {}, 1.0, state="done"), Trial(1, {}, 2.0, state="done", feasible=False)]
    found = contents._trials(judged)
    assert _numbers(found["columns"]["infeasible"]).tolist() == [0, 1]


# Its limits


def test_many_trials_and_parameters_are_limited(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "TRIALS", 5)
    monkeypatch.setattr(contents, "CELLS", 18)
    found = _content(study)
    ids = _numbers(found["trials"]["columns"]["id"]).tolist()
    best, all_ids = study.best, [trial.id for trial in study.trials]
    assert best is not None
    assert ids == sorted({best.id, *all_ids[-5:]})
    assert found["left_out"] == len(all_ids) - len(ids)
    assert sum("values" in parameter for parameter in found["parameters"]) == 18 // len(ids)
    assert len(found["parameters"]) == len(SPACE)


def test_long_texts_are_cut(study: Study) -> None:
    study.note(4, "x" * 5000)
    found = _content(study, title="t" * 5000)
    assert len(found["trials"]["notes"]["4"]) == contents.TEXT
    assert len(found["title"]) == contents.TEXT


def test_the_page_is_small_and_in_the_package() -> None:
    parts = resources.files("bounce.report").joinpath("page").iterdir()
    sizes = {part.name: len(part.read_bytes()) for part in parts}
    assert {"report.html", "report.css", "report.js"} <= set(sizes)
    assert sum(sizes.values()) < 100_000


# No text becomes markup


def test_texts_of_users_stay_texts(study: Study) -> None:
    page = _Page(document(_content(study)))
    assert page.tags.count("script") == 2
    found = json.loads(page.scripts[0])
    assert found["title"] == EVIL
    assert EVIL in [parameter["name"] for parameter in found["parameters"]]
    assert not any(name.startswith("on") for _, name, _ in page.attributes)
    assert page.scripts[1] == resources.files("bounce.report").joinpath("page/report.js").read_text()


def test_the_policy_allows_only_our_script_and_no_request(study: Study) -> None:
    text = document(_content(study))
    page = _Page(text)
    policy = next(
        value for tag, name, value in page.attributes if tag == "meta" and name == "content" and "src" in (value or "")
    )
    assert policy is not None
    digest = base64.b64encode(sha256(page.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy
    assert "unsafe" not in policy
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", text)
    assert "connect-src &#x27;self&#x27;" in document({"title": "x", "live": True})


@given(st.text())
def test_a_data_block_gives_every_text_back_and_never_ends_early(text: str) -> None:
    block = data_block({"x": [text.encode("utf-8", "replace").decode()]})
    assert "<" not in block
    assert json.loads(block) == {"x": [text.encode("utf-8", "replace").decode()]}


def test_numbers_that_json_lacks_become_null() -> None:
    assert finite({"a": [float("nan"), 1.5, (float("inf"),)]}) == {"a": [None, 1.5, [None]]}


# The server that watches


@pytest.fixture
def server(study: Study) -> Iterator[Server]:
    assert study.path is not None
    with Server(("127.0.0.1", 0), Watched(study.path, _Making(study.path, None))) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def _get(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    port = server.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, headers={"Host": f"127.0.0.1:{port}"} | headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


def test_the_server_serves_the_page_and_follows_the_study(server: Server, study: Study) -> None:
    code, headers, body = _get(server, "/")
    assert (code, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"connect-src" in body
    code, headers, body = _get(server, "/content.json")
    tag, before = headers["etag"], json.loads(body)
    assert before["live"] is True
    assert _get(server, "/content.json", **{"If-None-Match": tag})[0] == 304
    study.tell(study.ask(1), [0.001])  # another connection than the server's
    code, headers, body = _get(server, "/content.json", **{"If-None-Match": tag})
    assert code == 200
    assert headers["etag"] != tag
    assert json.loads(body)["status"]["done"] == before["status"]["done"] + 1
    assert json.loads(body)["best"]["value"] == "0.001"


def test_requests_for_another_host_are_refused(server: Server) -> None:
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "127.0.0.1:1"):
        code, _, body = _get(server, "/content.json", Host=host)
        assert code == 421, host
        assert b"rate" not in body


def test_nothing_but_get_is_answered(server: Server) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"):
        assert _get(server, "/", method)[0] == 501, method


def test_there_is_nothing_else_to_read(server: Server) -> None:
    for path in ("/lab.db", "/../lab.db", "/page/report.js", "//evil.example/", "/content.json/x"):
        assert _get(server, path)[0] == 404, path


def test_a_study_that_cannot_be_read_now_is_said(tmp_path: Path) -> None:
    def broken() -> dict[str, Any]:
        raise BounceError("the study is damaged")

    with Server(("127.0.0.1", 0), Watched(tmp_path / "x.db", broken)) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        code, _, body = _get(found, "/")
        found.shutdown()
        thread.join()
    assert (code, body) == (503, b"the study is damaged\n")


def test_importances_wait_for_a_tenth_more_values(study: Study) -> None:
    assert study.path is not None
    making = _Making(study.path, None)
    first = making()["importance"]
    study.add(_points(1, seed=5), [3.0])
    assert making()["importance"] == first
    study.add(_points(3, seed=6), [3.0, 4.0, 5.0])
    assert making()["importance"]["observations"] == first["observations"] + 4
