"""Document: the report as one HTML file that needs nothing else.

The page (`page/`) is plain HTML, CSS and JavaScript of this project. The content is JSON in a data block. The
invariant: no text of a user ends the block or becomes markup, and the page's own policy forbids any script but ours and
any request.
"""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib import resources
from typing import Any


def document(content: Mapping[str, Any]) -> str:
    """Return the page with its content; a live one may fetch its own content again, and nothing else."""
    style, script = _part("report.css"), _part("report.js")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            *(["connect-src 'self'"] if content.get("live") else []),
        ]
    )
    parts = {
        "title": html.escape(str(content["title"])),
        "policy": html.escape(policy),
        "style": style,
        "script": script,
        "content": data_block(content),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _part("report.html"))


def data_block(content: Mapping[str, Any]) -> str:
    """Return JSON that can stand in an HTML data block: it contains no `<`, so that it cannot end the block."""
    text = json.dumps(finite(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def finite(value: Any) -> Any:
    """Return JSON values in which numbers that JSON does not have are null."""
    if isinstance(value, Mapping):
        return {str(name): finite(x) for name, x in value.items()}
    if isinstance(value, list | tuple):
        return [finite(x) for x in value]
    if isinstance(value, float) and value - value != 0.0:
        return None
    return value


def _part(name: str) -> str:
    return resources.files("bounce.report").joinpath("page", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return what a content security policy calls a text by."""
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode("ascii")
