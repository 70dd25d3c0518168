"""The place of a study: the file that a path leads to.

The invariant: links are followed here, and nowhere later. So all who open a study, by whatever name, have the same file
and the same lock beside it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from bounce.errors import InvalidOption, InvalidStudy
from bounce.text import as_path

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def named(given: object) -> Path:
    """Return the path that a user gives for a study; refuse what cannot name a file."""
    path = as_path(given)
    if path is None:
        raise InvalidOption(f"path must be the name of a file, such as 'tuning.db', not {given!r}", option="path")
    return path


def followed(path: Path) -> Path:
    """Return the file that a path leads to, wherever the process goes; refuse a place where no study can be.

    The file need not exist.
    """
    file = Path(os.path.realpath(path))
    status = _status(path, file)
    if status is None:
        _refuse_folder(path, file)
    elif not stat.S_ISREG(status.st_mode):
        what = KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        example = f", such as {path / 'study.db'}" if stat.S_ISDIR(status.st_mode) else ""
        raise InvalidStudy(f"{path} is {what}, but a study is a file{example}")
    return file


def exists(path: Path) -> bool:
    """Return whether anything is at a path, or where it leads to."""
    return _status(path, Path(os.path.realpath(path))) is not None


def is_free(path: Path) -> bool:
    """Return whether a new study may begin at a path: nothing is there, or an empty file."""
    file = followed(path)
    status = _status(path, file)
    return status is None or status.st_size == 0


def _status(path: Path, file: Path) -> os.stat_result | None:
    """Return what the system says of a file; None if it does not exist."""
    try:
        return file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:  # its name is too long, its folder cannot be entered, links lead in a circle
        raise InvalidStudy(f"the study {path} cannot be opened: {error.strerror}") from error


def _refuse_folder(path: Path, file: Path) -> None:
    """Refuse a folder in which a new study cannot be created."""
    if not file.parent.is_dir():
        folder = file.parent if path.is_symlink() else path.parent
        raise InvalidStudy(f"the folder {folder} for the study {path.name} does not exist")
    if not os.access(file.parent, os.W_OK):
        raise InvalidStudy(f"the study {path} does not exist and cannot be created: its folder cannot be written to")
