"""Outputs: files to write, checked before the work is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

PICTURES = (".png", ".svg", ".pdf")


def check_file(out: Path, suffixes: Sequence[str], *, overwrite: bool) -> None:
    """Refuse a file that could not be written, or that already exists."""
    from bounce.errors import InvalidInput

    if out.suffix.lower() not in suffixes:
        allowed = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
        raise InvalidInput(f"the file must end in {allowed}, not {out.name!r}")
    if out.is_dir():
        raise InvalidInput(f"{out} is a folder, not a file")
    check_folder(out.parent)
    if out.exists() and not overwrite:
        raise InvalidInput(f"{out} already exists: choose another name, or use --overwrite")


def check_plot(out: Path, *, overwrite: bool) -> None:
    """Refuse a plot that could not be drawn or written, or that already exists."""
    from bounce.errors import InvalidInput

    check_file(out, PICTURES, overwrite=overwrite)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InvalidInput("plots need matplotlib: pip install 'bounce-bo[plot]'") from None


def check_folder(folder: Path) -> None:
    """Refuse a folder that does not exist or cannot be written to."""
    from bounce.errors import InvalidInput

    if not folder.is_dir():
        raise InvalidInput(f"the folder {str(folder)!r} does not exist")
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InvalidInput(f"nothing can be written to the folder {str(folder)!r}: {error.strerror}") from None


@contextmanager
def replacing(out: Path) -> Iterator[Path]:
    """Give the file to write in place of an output, which only a complete one replaces; name the output in errors."""
    from bounce.errors import InvalidInput

    part = out.with_name(f".{out.stem}.part{out.suffix}")  # the end of the name says the format
    try:
        yield part
        part.replace(out)
    except OSError as error:
        raise InvalidInput(f"{out} cannot be written: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def free_name(path: Path) -> Path:
    """Return a path that does not exist yet: the given one, or `name-2.png`, `name-3.png`, ..."""
    found, number = path, 2
    while found.exists():
        found, number = path.with_name(f"{path.stem}-{number}{path.suffix}"), number + 1
    return found
