"""Texts that every file and terminal can hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bounce.text import told


@given(text=st.text(st.characters(), max_size=300), most=st.integers(100, 200))
def test_what_is_told_is_short_and_has_no_control_characters(text: str, most: int) -> None:
    said = told(text, most)
    assert len(said) <= most
    assert all(c.isprintable() or c in "\n\t" for c in said)
    assert told(said, most) == said
    if len(text) <= most and all(c.isprintable() or c in "\n\t" for c in text):
        assert said == text


def test_a_text_that_is_cut_keeps_its_ends_and_says_how_long_it_was() -> None:
    said = told("first" + "." * 10_000 + "last")
    assert said.startswith("first")
    assert said.endswith("last")
    assert "[... cut, 10009 characters in all ...]" in said
