"""Places to write to, checked before the work is done."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile


def check_picture(out: Path) -> None:
    """Refuse a picture that could not be written, before the work is done."""
    from bounce.errors import InvalidInput

    if out.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"the picture must end in .png, .svg or .pdf, not {out.name!r}")
    if out.is_dir():
        raise InvalidInput(f"the picture {str(out)!r} cannot be a folder")
    if not out.parent.is_dir():
        raise InvalidInput(f"there is no folder {str(out.parent)!r} for the picture")
    check_folder(out.parent)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise InvalidInput("pictures need matplotlib: pip install 'bounce-bo[plot]'") from None


def check_folder(folder: Path) -> None:
    """Refuse a folder that nothing can be written to."""
    from bounce.errors import InvalidInput

    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InvalidInput(f"nothing can be written to the folder {str(folder)!r}: {error.strerror}") from None
