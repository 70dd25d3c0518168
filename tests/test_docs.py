from __future__ import annotations

import dataclasses
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import bounce
from bounce import Study
from bounce.optimizer.options import Options
from pages import Block, blocks, run
from spaces import binary

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
NOT_RUN = {
    ("benchmarks.md", "needs the network"),
    ("cluster.md", "needs Kubernetes"),
    ("cluster.md", "needs MPI"),
    ("cluster.md", "needs Slurm"),
    ("cluster.md", "needs the network"),
}


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


def test_every_option_is_explained() -> None:
    text = (DOCS / "budgets.md").read_text()
    assert [field.name for field in dataclasses.fields(Options) if not re.search(rf"`{field.name}\b", text)] == []


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


def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path],
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
        (block("this is no Python\n", title="needs a miracle"), "invalid syntax"),
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
