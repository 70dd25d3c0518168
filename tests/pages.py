"""Run the fenced code blocks of a page, from top to bottom, in the current folder.

    python pages.py PAGE.md

- All `python` blocks share one namespace.
- In an `sh` block, every command must succeed.
- In a `console` block, a line that begins with `$ ` is a command, and the lines below it are its expected output.
  `...` matches any text.
- A block whose title is a file name (title="run.py") is written to that file. A Python file is then run.
- A block whose title begins with "needs" cannot run everywhere. If it is Python, it is compiled, and its imports of
  Bounce and of files of the page are executed. Otherwise it is not run.
- Blocks in other languages are not run.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands import client

FENCE = re.compile(r"^( *)```(\w*)(.*)$")
TITLE = re.compile(r'title="([^"]*)"')


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    """The number of its first line on the page, from 1."""
    language: str
    title: str
    text: str

    @property
    def file(self) -> str | None:
        """The file that the block is written to, if its title names one."""
        return self.title if re.fullmatch(r"[\w-]+\.\w+", self.title) else None

    @property
    def exempt(self) -> bool:
        """Whether it cannot be run everywhere."""
        return self.title.startswith("needs ")

    def tree(self) -> ast.Module:
        """Return the parsed Python code, with the line numbers of the page."""
        return ast.increment_lineno(ast.parse(self.text, self.page), self.line - 1)


def blocks(page: Path) -> Iterator[Block]:
    """Find the fenced blocks of a page."""
    lines = iter(enumerate(page.read_text().splitlines(), start=1))
    for number, line in lines:
        fence = FENCE.match(line)
        if fence is None:
            continue
        indent, language, rest = fence.groups()
        text = []
        for _, inner in lines:
            if inner.strip() == "```":
                break
            text.append(inner.removeprefix(indent))
        else:
            raise ValueError(f"{page.name}, line {number}: the block has no end")
        title = TITLE.search(rest)
        yield Block(page.name, number + 1, language, title[1] if title else "", "\n".join(text) + "\n")


def run(block: Block, namespace: dict[str, Any]) -> None:
    """Run a block as its language and title say."""
    if block.exempt:
        if block.language == "python":
            exec(compile(ast.Module(list(own_imports(block.tree())), []), block.page, "exec"), {})
    elif block.file is not None:
        Path(block.file).write_text(block.text)
        if block.language == "python":
            said(block, f"{sys.executable} -W error {block.file}")
    elif block.language == "python":
        exec(compile(block.tree(), block.page, "exec"), namespace)
    elif block.language == "sh":
        said(block, f"set -e\n{block.text}")
    elif block.language == "console":
        for command, expected in transcript(block):
            printed = said(block, command)
            if not matches(expected, printed):
                raise AssertionError(f"{place(block)}: {command!r} printed\n{printed}\nand not\n{expected}")


def own_imports(tree: ast.Module) -> Iterator[ast.stmt]:
    """Find the imports of Bounce and of files in the current folder."""
    compile(tree, "page", "exec")
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            root = (module or "").partition(".")[0]
            if root == "bounce" or Path(f"{root}.py").exists():
                yield node


def transcript(block: Block) -> Iterator[tuple[str, str]]:
    """Split a console block into commands and their expected output."""
    for part in re.split(r"^\$ ", block.text.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def matches(expected: str, printed: str) -> bool:
    """Compare the expected output with the printed one, ignoring spaces at line ends; an empty expectation matches."""
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("..."))
    tidy = "\n".join(line.rstrip() for line in printed.strip().splitlines())
    return not expected.strip() or re.fullmatch(pattern, tidy, re.DOTALL) is not None


def said(block: Block, command: str) -> str:
    """Run a command and return its output."""
    done = subprocess.run(command, shell=True, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{place(block)}: {command!r} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def place(block: Block) -> str:
    """Return the page and line of a block."""
    return f"{block.page}, line {block.line}"


def main(page: Path) -> None:
    """Run the blocks of a page."""
    sys.path[0] = os.getcwd()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    found = list(blocks(page))
    shells = any("bounce" in block.text for block in found if block.language in ("sh", "console"))
    with client() if shells else nullcontext(Path(sys.executable)) as program:
        folders = [str(program.parent), str(Path(sys.executable).parent)]
        os.environ["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])
        for block in found:
            run(block, namespace)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
