"""Where a study is: links, files that are none, and what cannot be a path."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from bounce import InvalidOption, InvalidStudy, Study, StudyLocked, minimize
from objectives import mixed, value
from terminal import Said, Terminal

OPTIONS: dict[str, Any] = {"budget": 4, "seed": 0}


def test_a_study_behind_a_link_is_the_file_that_the_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    link, file = tmp_path / "a.db", tmp_path / "disk" / "b.db"
    link.symlink_to(Path("disk", "b.db"))
    with Study.open(link, space=mixed(), **OPTIONS) as study:
        study.run(value)
        assert study.path == link
    assert link.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "disk"]
    assert sorted(path.name for path in file.parent.iterdir()) == ["b.db", "b.db.lock", "b.db.queue"]
    with Study.open(file) as study:
        assert study.done


def test_a_study_is_run_once_by_whatever_name(tmp_path: Path) -> None:
    link, file = tmp_path / "a.db", tmp_path / "b.db"
    link.symlink_to(file)
    refused: list[StudyLocked] = []

    def at_the_same_time(_: object) -> None:
        with Study.open(link) as other, pytest.raises(StudyLocked, match=r"a\.db is being run by process") as error:
            other.run(value)
        refused.append(error.value)

    with Study.open(file, space=mixed(), **OPTIONS) as study:
        study.run(value, callbacks=[at_the_same_time])
    assert len(refused) == 4


def test_a_link_without_a_folder_behind_it_says_which_one_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a.db").symlink_to(tmp_path / "none" / "b.db")
    with pytest.raises(InvalidStudy, match=r"the folder .*none for the study a\.db does not exist"):
        Study.open(tmp_path / "a.db", space=mixed(), **OPTIONS)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(path))


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (pipe, "a named pipe"),
        (listening, "a socket"),
        (Path.mkdir, "a folder"),
        (lambda path: path.symlink_to(os.devnull), "a device"),
    ],
)
def test_what_is_no_file_is_refused_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any, what: str
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    make(Path("a.db"))
    before = Path("a.db").lstat()
    with pytest.raises(InvalidStudy, match=rf"^a\.db is {what}, but a study is a file"):
        Study.open("a.db", space=mixed(), **OPTIONS)
    after = Path("a.db").lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


def test_commands_refuse_a_pipe_too(bounce: Terminal) -> None:
    os.mkfifo(bounce.folder / "a.db")
    for words in (["status", "a.db"], ["check", "a.db"], ["repair", "a.db", "--out", "b.db"], ["run", bounce.spec()]):
        said = bounce(*words)
        assert said.code in (1, 2)
        assert "a.db is a named pipe, but a study is a file" in said.err
        assert said.err.count("\n") == 1
    assert not (bounce.folder / "b.db").exists()


@pytest.mark.parametrize("path", [5, b"a.db", "", "a\0b.db", "\ud800.db", 0.5, ["a.db"]])
def test_what_cannot_name_a_file_is_refused(path: Any) -> None:
    with pytest.raises(InvalidOption, match=r"path must be the name of a file, such as 'tuning\.db', not") as error:
        Study.open(path, space=mixed(), **OPTIONS)
    assert error.value.option == "path"
    assert str(error.value).endswith(repr(path))


def test_a_path_that_the_system_refuses_is_a_sentence(tmp_path: Path) -> None:
    circle = tmp_path / "circle.db"
    circle.symlink_to(circle)
    for path, said in ((tmp_path / ("a" * 300), "File name too long"), (circle, "Too many levels of symbolic links")):
        with pytest.raises(InvalidStudy, match=said) as error:
            Study.open(path, space=mixed(), **OPTIONS)
        assert str(error.value).startswith(f"the study {path} cannot be opened: ")


def test_commands_say_so_too(bounce: Terminal) -> None:
    long = "a" * 300
    for words in (["status", long], ["check", long], ["run", bounce.spec(), "--study", long]):
        assert bounce(*words) == Said(2, "", f"bounce: the study {long} cannot be opened: File name too long\n")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_an_empty_file_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.db"
    path.touch()
    path.chmod(mode)
    with Study.open(path, space=mixed(), **OPTIONS) as study:
        study.run(value)
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("logs", [5, b"logs", "", "a\0b"])
def test_what_cannot_name_a_folder_of_logs_is_refused(logs: Any) -> None:
    with pytest.raises(InvalidOption, match="logs must be the name of a folder, such as 'logs', not") as error:
        minimize(value, mixed(), 3, logs=logs)
    assert error.value.option == "logs"
