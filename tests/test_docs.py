from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import operator
import re
import sqlite3
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import bounce
from bounce import Bounce, Method, Study
from bounce.optimizer.options import Options
from bounce.spec.document import OPTIONS, TOP
from bounce.study.minimize import BESIDE
from pages import Block, blocks, run
from spaces import binary

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "bounce"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
NOT_RUN = {
    ("benchmarks.md", "needs the network"),
    ("cluster.md", "needs Kubernetes"),
    ("cluster.md", "needs MPI"),
    ("cluster.md", "needs Slurm"),
    ("cluster.md", "needs the network"),
    ("python.md", "needs MLflow"),
    ("python.md", "needs Weights & Biases"),
    ("report.md", "needs a browser"),
    ("optuna.md", "needs Ray Tune"),
    ("optuna.md", "needs optuna-integration"),
}


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page))], ids=lambda page: page.name)
def test_the_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "tests" / "pages.py", page],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_these_blocks_and_no_others_are_only_shown() -> None:
    found = [block for page in PAGES for block in blocks(page)]
    assert {(block.page, block.title) for block in found if block.exempt} == NOT_RUN
    assert {block.language for block in found} <= {"python", "sh", "console", "toml", "csv", "text"}
    assert all(block.exempt or block.file or not block.title for block in found)


def test_the_reference_has_every_public_name() -> None:
    named = re.findall(r"^::: bounce\.(\w+)$", (DOCS / "reference.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(name for name in bounce.__all__ if hasattr(bounce, name))


def rows(page: str, header: str) -> list[list[str]]:
    """Return the cells of all tables of a page whose header begins with some words."""
    found = []
    for table in re.findall(
        rf"^\| {re.escape(header)}.*\n\|[ |-]*\n((?:\|.*\n)+)", (DOCS / page).read_text(), re.MULTILINE
    ):
        found += [[cell.strip() for cell in line.strip("|\n ").split(" | ")] for line in table.splitlines()]
    return found


def in_code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_option_is_listed_with_its_default() -> None:
    listed = {in_code(name)[0]: default for name, default, *_ in rows("options.md", "option | default")}
    assert list(listed) == [field.name for field in dataclasses.fields(Options)]
    assert listed.pop("budget") == "required"
    defaults = Options(budget=1).document()
    assert {name: ast.literal_eval(in_code(text)[0]) for name, text in listed.items()} == {
        name: defaults[name] for name in listed
    }


def test_every_argument_of_a_run_is_listed_with_its_default() -> None:
    listed = {in_code(name)[0]: in_code(default)[0] for name, default, *_ in rows("options.md", "argument | default")}
    taken = inspect.signature(bounce.minimize).parameters
    assert tuple(listed) == tuple(BESIDE)
    assert {name: ast.literal_eval(text) for name, text in listed.items()} == {
        name: taken[name].default for name in BESIDE
    }


def test_every_key_of_a_spec_is_listed() -> None:
    listed = [in_code(name)[0].strip("[]") for name, *_ in rows("command-line.md", "key | meaning | default")]
    assert sorted(listed) == sorted(TOP)
    options = next(meaning for name, meaning, *_ in rows("command-line.md", "key | meaning") if "[options]" in name)
    assert tuple(in_code(options)) == OPTIONS


def test_names_of_the_first_version_are_gone() -> None:
    old = re.compile(r"\b(robust|length_comb|length_cont)\b")
    named = {page.name: set(old.findall(page.read_text().partition("## Versions")[0])) for page in PAGES}
    assert {page: names for page, names in named.items() if names} == {}


def test_every_field_of_a_method_is_listed_with_both_values() -> None:
    listed = {in_code(name)[0]: in_code(a + b) for name, a, b, *_ in rows("method.md", "field | default | paper")}
    fields = [field.name for field in dataclasses.fields(Method)]
    assert list(listed) == fields
    ours, papers = Method(), Method.paper()
    assert {name: [ast.literal_eval(value) for value in values] for name, values in listed.items()} == {
        name: [getattr(ours, name), getattr(papers, name)] for name in fields
    }
    text = (DOCS / "method.md").read_text()
    assert [name for name in fields if not re.search(rf"^- `{name}`: ", text, re.MULTILINE)] == []


def test_the_plan_of_a_budget_is_that_of_the_schedule() -> None:
    plans = [[int(cell.replace(",", "")) for cell in row] for row in rows("budgets.md", "budget | 20 bins")]
    assert [plan[0] for plan in plans] == [50, 200, 1000]
    for budget, *shares in plans:
        planner = Bounce(binary(50), budget, seed=0)._planner
        schedule = planner.stages.schedule
        left = budget - planner.initial_points
        planned = []
        for dim in (20, 40, 50):
            planned.append(min(schedule.budget(dim), left))
            left -= planned[-1]
        assert shares == [*planned, left]


def modules(folder: Path) -> set[str]:
    """Return the modules and packages in a folder."""
    return {
        path.stem
        for path in folder.iterdir()
        if (path.suffix == ".py" and path.stem not in ("__init__", "__main__")) or (path / "__init__.py").exists()
    }


def test_the_architecture_names_every_room_and_its_modules() -> None:
    rooms = {in_code(room)[0]: set(in_code(inside)) for room, _, _, inside in rows("architecture.md", "room | noun")}
    assert rooms == {name: modules(SOURCE / name) for name in modules(SOURCE) if (SOURCE / name).is_dir()}
    leaves = {in_code(name)[0] for name, _ in rows("architecture.md", "module | what it holds")}
    assert leaves == modules(SOURCE) - set(rooms)


def test_the_layers_that_are_drawn_are_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    (drawing,) = (block for block in blocks(DOCS / "architecture.md") if block.language == "text")
    assert [re.split(r"  +", line)[0] for line in drawing.text.splitlines()] == layers


def test_the_way_of_a_point_and_the_places_to_change_exist() -> None:
    steps = rows("architecture.md", "step | what happens")
    assert [number for number, *_ in steps] == [str(n) for n in range(1, 15)]
    for _, _, module, function in steps:
        name = "bounce." + in_code(module)[0].removesuffix(".py").replace("/", ".")
        assert callable(operator.attrgetter(in_code(function)[0])(importlib.import_module(name))), function
    places: list[Any] = [in_code(change) for _, change in rows("architecture.md", "you want to add")]
    assert len(places) >= 4
    for place in places:
        files = [word for word in place if "/" in word or word.endswith(".py")]
        code = "".join((SOURCE / file).read_text() for file in files if (SOURCE / file).is_file())
        assert [f for f in files if not ((SOURCE / f).exists() or (ROOT / f).exists())] == []
        words = [word.rpartition(".")[2] for word in place if word not in files and not (SOURCE / word).is_dir()]
        code += (SOURCE / "benchmarks" / "problem.py").read_text()
        assert [word for word in words if not re.search(rf"\b{word}\b", code)] == [], place


def test_the_page_on_the_file_names_its_columns(tmp_path: Path) -> None:
    Study.open(tmp_path / "s.db", space=binary(3), budget=3).close()
    database = sqlite3.connect(tmp_path / "s.db")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    columns = {
        table: {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    }
    database.close()
    text = (DOCS / "file-format.md").read_text()
    named = {}
    for section in re.split(r"^## Table ", text, flags=re.MULTILINE)[1:]:
        cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
        named[section.split("`")[1]] = set(re.findall(r"`(\w+)`", " ".join(cells)))
    assert named == columns
    assert f"at present {version}," in text


@pytest.mark.slow
def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],  # --quiet would hide warnings
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) >= len(PAGES) - 1
    loaded = r'<(?:script|img|iframe)[^>]*\bsrc="(?:https?:)?//|<link[^>]*rel="stylesheet"[^>]*href="(?:https?:)?//'
    assert [page for page in pages if re.search(loaded, page.read_text())] == []


def block(text: str, language: str = "python", title: str = "") -> Block:
    return Block("page.md", 7, language, title, text)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (block("1 / 0\n"), "division by zero"),
        (block("raise SystemExit(3)\n", title="run.py"), "page.md, line 7: .* ended with 3"),
        (block("exit 4\n", "sh"), "page.md, line 7: .*exit 4.* ended with 4"),
        (block("$ echo one\ntwo\n", "console"), "printed\none\n\nand not\ntwo"),
        (block("from bounce import Nothing\n", title="needs a miracle"), "cannot import name 'Nothing'"),
        (block("this cannot be parsed\n", title="needs a miracle"), "invalid syntax"),
    ],
)
def test_a_block_that_is_wrong_is_noticed(
    wrong: Block, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((Exception, SystemExit), match=said):
        run(wrong, {})


def test_blocks_build_on_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n```python\nx = 2\n```\n\n- in a list:\n\n    ```python\n    y = x + 1\n    ```\n\n"
        '```text title="said.txt"\none\n\ntwo\n```\n\n```console\n$ cat said.txt\none\n...\n$ true\n```\n\n'
        '```python title="needs a miracle"\nimport miracle\nraise AssertionError\n```\n\n```text\nnothing\n```\n'
    )
    found = list(blocks(page))
    assert [b.line for b in found] == [4, 10, 14, 20, 27, 32]
    namespace: dict[str, int] = {}
    for b in found:
        run(b, namespace)
    assert namespace["y"] == 3
    assert (tmp_path / "said.txt").read_text() == "one\n\ntwo\n"


def test_a_block_without_an_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("```python\nx = 2\n")
    with pytest.raises(ValueError, match=r"page\.md, line 1: the block has no end"):
        list(blocks(tmp_path / "page.md"))
