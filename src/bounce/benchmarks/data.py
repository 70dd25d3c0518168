"""Data files: which ones there are, where they are looked for, and how they are fetched.

Nothing is read or downloaded at import. A file is looked for in `$BOUNCE_DATA`, then in the user's cache.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bounce.benchmarks import slices
from bounce.benchmarks.atomic import replacing
from bounce.benchmarks.sources import ByHand, Report, Scratch, Source, Web, Wheel, ZipOnWeb
from bounce.errors import DataError, InvalidInput


@dataclass(frozen=True)
class Derived:
    """A table of an SVM problem, computed from the raw CT slices."""

    problem: int

    needs = ("slice",)
    automatic = True

    def __str__(self) -> str:
        return "computed from slice_localization_data.csv"

    def pieces(self, scratch: Scratch, report: Report) -> Iterator[bytes]:
        """Compute the table."""
        report(0, None)
        raw = locate("slice")
        try:
            yield slices.make(raw, self.problem)
        except (OSError, ValueError) as error:
            raise DataError(f"cannot compute the table: {error}") from error


@dataclass(frozen=True)
class DataFile:
    """A file that a problem needs."""

    name: str
    file: str
    sha256: str | None
    """None if the file is recognised by its content when it is read."""
    size: int | None
    """In bytes; None if it is not known in advance."""
    source: Source
    licence: str
    """As stated by the source."""
    executable: bool = False
    other_names: tuple[str, ...] = ()
    """Other names under which a user may have the same file."""


BOCODE = "bocode==1.0.0"
CLUSTER125 = "IS1_5.0.5.0.0.5_softer_periodic.wcnf"

CATALOGUE = (
    DataFile(
        name="frb10-6-4",
        file="frb10-6-4.wcnf",
        sha256="07c45406c22b997d264a58d76f2445318171e1c25427ed3407ad3c31c7ccc0ba",
        size=8_534,
        # The crafted instance of the MaxSAT evaluation, in the repository of COMBO (Oh et al., 2019).
        source=Web(
            "https://raw.githubusercontent.com/QUVA-Lab/COMBO/9529eabb86365ce3a2ca44fff08291a09a853ca2"
            "/COMBO/experiments/MaxSAT/maxsat2018_data/frb-frb10-6-4.wcnf"
        ),
        licence="BSD-2-Clause (COMBO)",
    ),
    DataFile(
        name="dna",
        file="dna.scale",
        sha256="f74937ccb8908628058ae1819d4d46c960ce64383f622c994d4f2e6e21026494",
        size=501_248,
        source=Web("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/dna.scale"),
        licence="none stated",
    ),
    DataFile(
        name="slice",
        file="slice_localization_data.csv",
        sha256="b78360d8010abeca850e8a2792c486f53d15d2d293473f331386739bcdf2b4c9",
        size=81_463_566,
        source=Wheel(BOCODE, "bocode/Synthetics/data/slice_localization_data.csv"),
        licence="CC BY 4.0 (UCI)",
    ),
    DataFile(
        name="slice53",
        file="slice_svm53.npz",
        sha256=None,
        size=None,
        source=Derived(53),
        licence="CC BY 4.0 (UCI)",
    ),
    DataFile(
        name="slice388",
        file="slice_svm388.npz",
        sha256=None,
        size=None,
        source=Derived(388),
        licence="CC BY 4.0 (UCI)",
    ),
    DataFile(
        name="mopta08",
        file="mopta08_elf64.bin",
        sha256="2ad78a256980134c2a84debd4ff15a53534c812f48175577f9155cdd22d6ffb5",
        size=58_565_259,
        source=Wheel(BOCODE, "bocode/Engineering/Mopta_Data/mopta08_elf64.bin"),
        licence="MIT (bocode)",
        executable=True,
    ),
    DataFile(
        name="cluster60",
        file="cluster_expansion_IS95_2.1.5.1.2.1.wcnf.xz",
        sha256="2548fc63dcc6580dd32f469afa3ff95c72eeb870fd251e19336c19563ed7e197",
        size=194_308,
        source=ByHand("https://maxsat-evaluations.github.io"),
        licence="none stated",
    ),
    DataFile(
        name="cluster125",
        file=f"{CLUSTER125}.gz",
        sha256=None,
        size=None,
        # The incomplete weighted track of the MaxSAT evaluation 2018, 775 MB.
        source=ZipOnWeb(
            "https://www.cs.toronto.edu/maxsat-lib/maxsat-instances/downloads/ms-evals/ms18_incomplete_wt.zip",
            f"{CLUSTER125}.gz",
        ),
        licence="none stated",
        other_names=(CLUSTER125, f"cluster-expansion-{CLUSTER125}", f"cluster-expansion-{CLUSTER125}.gz"),
    ),
)


def files(names: Iterable[str] | None = None) -> list[DataFile]:
    """Return the data files with these names, or all of them."""
    known = {file.name: file for file in CATALOGUE}
    wanted = list(known) if names is None else list(names)
    for name in wanted:
        if name not in known:
            raise InvalidInput(f"there is no data file {name!r}; the names are {', '.join(known)}")
    return [known[name] for name in wanted]


def fetchable() -> list[DataFile]:
    """Return the data files that can be fetched automatically."""
    return [file for file in CATALOGUE if file.source.automatic]


def cache() -> Path:
    """Return the folder for this program's files in the platform's user cache."""
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "bounce" / "Cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "bounce"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "bounce"


def folders() -> list[Path]:
    """Return the folders that are searched for data files; new files are saved in the first."""
    given = os.environ.get("BOUNCE_DATA")
    return [Path(given), cache()] if given else [cache()]


def find(file: DataFile) -> Path | None:
    """Return the path of a data file, or None if it does not exist."""
    candidates = (folder / name for folder in folders() for name in (file.file, *file.other_names))
    return next((path for path in candidates if path.is_file()), None)


def locate(name: str) -> Path:
    """Return the path of a data file whose content is correct."""
    (file,) = files([name])
    path = find(file)
    if path is None:
        looked = " or ".join(map(str, folders()))
        raise DataError(f"{file.file} is not in {looked}: run `bounce data fetch {name}`")
    if not _sound(file, path):
        raise DataError(f"{path} is damaged: run `bounce data fetch {name}`")
    return path


def _sound(file: DataFile, path: Path) -> bool:
    if isinstance(file.source, Derived):
        return slices.sound(path, file.source.problem)
    if file.sha256 is None:
        return True
    try:
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == file.sha256
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def _silent(file: DataFile, done: int, total: int | None) -> None:
    pass


def fetch(wanted: Sequence[DataFile], report: Callable[[DataFile, int, int | None], None] = _silent) -> list[Path]:
    """Fetch data files, and the files they are computed from; return their paths.

    Files that exist and are correct are kept. A file that cannot be fetched does not stop the others; a `DataError`
    names all failures at the end. The report is called with a file, the number of bytes so far, and the total.
    """
    paths, problems = [], []
    with ExitStack() as stack:

        @functools.cache
        def scratch() -> Path:
            return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bounce-data-")))

        for file in _with_needs(wanted):
            try:
                paths.append(_fetch(file, scratch, report))
            except DataError as error:
                problems.append(f"{file.name} ({folders()[0] / file.file}): {error}")
    if problems:
        raise DataError("\n".join(problems))
    return paths


def _with_needs(wanted: Sequence[DataFile]) -> list[DataFile]:
    """Put the files that a missing file is computed from before it; list each file once."""
    ordered: dict[str, DataFile] = {}
    for file in wanted:
        needs = files(file.source.needs) if find(file) is None else []
        ordered |= {each.name: each for each in (*needs, file)}
    return list(ordered.values())


def _fetch(file: DataFile, scratch: Scratch, report: Callable[[DataFile, int, int | None], None]) -> Path:
    present = find(file)
    if present is not None and _sound(file, present):
        return present
    path = folders()[0] / file.file
    digest, size = hashlib.sha256(), 0
    try:
        with replacing(path, 0o777 if file.executable else 0o666) as out:
            for piece in file.source.pieces(scratch, lambda done, total: report(file, done, total)):
                digest.update(piece)
                out.write(piece)
                size += len(piece)
            if file.sha256 not in (None, digest.hexdigest()):
                raise DataError(f"{file.source} gave a file with the sha256 {digest.hexdigest()}, not {file.sha256}")
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror or error}") from error
    report(file, size, size)
    return path
