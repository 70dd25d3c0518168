"""Renew the measured parts of a document: what stands between two markers is replaced, all else is kept.

<!-- quality: begin -->
...
<!-- quality: end -->
"""

from __future__ import annotations

import shutil
from pathlib import Path

from bounce.errors import InvalidInput


def renew(document: Path, name: str, text: str, picture: Path | None = None) -> None:
    """Put a text, and a picture copied next to the document, between the markers of a name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    whole = document.read_text(encoding="utf-8")
    if whole.count(begin) != 1 or whole.count(end) != 1 or whole.index(begin) > whole.index(end):
        raise InvalidInput(f"{document} must have the markers {begin!r} and {end!r}, once and in this order")
    if picture is not None:
        copy = document.with_name(picture.name)
        if copy.resolve() != picture.resolve():
            shutil.copyfile(picture, copy)
        text = f"{text.rstrip()}\n\n![{name}]({picture.name})"
    head, tail = whole.split(begin)[0], whole.split(end)[1]
    document.write_text(f"{head}{begin}\n\n{text.rstrip()}\n\n{end}{tail}", encoding="utf-8")
