"""Replace the measured parts of a document: the text between two markers. The rest is kept.

<!-- quality: begin -->
...
<!-- quality: end -->
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from bounce.errors import InvalidInput


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def check(document: Path | None, *names: str, out: Path | None = None, files: Iterable[Path] = ()) -> None:
    """Check the files, the folder and the markers of a document before anything is measured."""
    for path in (*files, *([] if document is None else [document])):
        if not path.is_file():
            raise InvalidInput(f"there is no file {str(path)!r}")
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"{str(out)!r} must be a folder: {error.strerror}") from None
    if document is not None:
        whole = document.read_text(encoding="utf-8")
        for begin, end in map(_markers, names):
            if whole.count(begin) != 1 or whole.count(end) != 1 or whole.index(begin) > whole.index(end):
                raise InvalidInput(f"{document} must have the markers {begin!r} and {end!r}, once and in this order")


def renew(document: Path, name: str, text: str, picture: Path | None = None) -> None:
    """Put a text, and a picture copied next to the document, between the markers of a name."""
    check(document, name)
    begin, end = _markers(name)
    whole = document.read_text(encoding="utf-8")
    if picture is not None:
        copy = document.with_name(picture.name)
        if copy.resolve() != picture.resolve():
            shutil.copyfile(picture, copy)
        text = f"{text.rstrip()}\n\n![{name}]({picture.name})"
    head, tail = whole.split(begin)[0], whole.split(end)[1]
    document.write_text(f"{head}{begin}\n\n{text.rstrip()}\n\n{end}{tail}", encoding="utf-8")
