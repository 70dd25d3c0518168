"""Pictures: commands that say and show what matters in a study."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bounce.cli.best import AsJson
from bounce.cli.target import AnyPath, StudyPath, open_study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bounce.optimizer.importance import Bin, Importance, Influence
    from bounce.report.content import Source
    from bounce.study.study import Study

USUAL = 20  # parameters that are printed
SHOWN = 10  # pairs that are printed
SUBSTITUTES = 5  # of one parameter that are printed
LEAST = 0.005  # the share of a pair that is printed
FRESH = 1.1  # times as many values make new importances
BAR = 20  # characters of a bar for all of the variance


def importance(
    target: AnyPath,
    study: StudyPath = None,
    most: Annotated[
        int | None,
        typer.Option(
            "--most", "-n", min=1, metavar="N", help="Print this many parameters. The default is 20, or all as JSON."
        ),
    ] = None,
    bins: Annotated[bool, typer.Option("--bins", help="Print also the bins of the search and their shares.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print how much each parameter matters, alone and with others.

    The shares are of the variance over the whole space, by a model of all results. The column `data` is the importance
    from the data alone.
    """
    import json
    from dataclasses import asdict, replace

    from bounce.errors import InvalidInput
    from bounce.optimizer.importance import POOR

    with open_study(target, study) as opened:
        found = opened.importance()
    if found is None:
        raise InvalidInput(f"{target} has too few different values: importances need at least 8 values")
    if as_json:
        print(json.dumps(asdict(replace(found, parameters=found.parameters[:most]))))
        return
    _print_parameters(found, most or USUAL)
    pairs = [pair for pair in found.pairs[:SHOWN] if pair.share >= LEAST]
    if pairs:
        print("\nthe strongest pairs: what two parameters do only together")
        for pair in pairs:
            print(f"  {_percent(pair.share)}  {' x '.join(map(_name, pair.names))}")
    if bins:
        _print_bins(found.bins)
    quality = _percent(found.quality).strip()
    print(f"\nby a model of {found.observations} results, which predicts {quality} of the variance")
    if found.quality < POOR:
        print("these shares are not to be relied on: the model predicts little. More results help")


def report(
    target: AnyPath,
    study: StudyPath = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page to write, by default NAME.html in this folder.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the page if it already exists.")] = False,
) -> None:
    """Write a page about a study, to look at and to send.

    It shows the progress, the best settings, what matters and all trials. It is one HTML file that needs no network.
    """
    from bounce.cli.outputs import check_file, replacing
    from bounce.report.content import content
    from bounce.report.document import document

    place = Path(f"{target.stem}.html") if out is None else out
    check_file(place, (".html", ".htm"), overwrite=overwrite)
    with open_study(target, study) as opened:
        page = document(content(_source(target, study, opened), opened.importance()))
    with replacing(place) as part:
        part.write_text(page, encoding="utf-8")
    print(place)


def watch(
    target: AnyPath,
    study: StudyPath = None,
    port: Annotated[int, typer.Option(min=0, metavar="PORT", help="The port to listen at; 0 for any free one.")] = 8420,
    host: Annotated[
        str,
        typer.Option(
            metavar="HOST",
            help="The address to listen at. Anyone who reaches an address beyond this machine can read the study.",
        ),
    ] = "127.0.0.1",
) -> None:
    """Show the page of a study while it runs, in a browser.

    It is served to this machine and updated every two seconds. Nothing can be changed from the browser. Ctrl-C ends it.
    """
    import sys
    from errno import EADDRNOTAVAIL
    from socket import gaierror

    from bounce.cli.target import path_of
    from bounce.errors import InvalidInput
    from bounce.report.watching import LOOPBACK, Server, Watched

    watched = Watched(path_of(target, study), _Making(target, study))
    watched()  # refuses a damaged study before anything is served
    try:
        server = Server((host, port), watched, [host])
    except (OSError, OverflowError) as error:  # the latter for a port above 65535
        other = "--host" if isinstance(error, gaierror) or getattr(error, "errno", None) == EADDRNOTAVAIL else "--port"
        said = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot listen at {host}:{port}: {said}. Choose another {other}") from None
    if host not in LOOPBACK:
        print(f"bounce: anyone who reaches {host} can read this study", file=sys.stderr)
    print(f"{server.url} shows {target}; Ctrl-C ends it", flush=True)
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("bounce: watching ended", file=sys.stderr)


class _Making:
    """Makes the content of a page that is watched."""

    def __init__(self, target: Path, study: Path | None) -> None:
        self._target, self._study = target, study
        self._importance: Importance | None = None
        self._valued = 0

    def __call__(self) -> dict[str, Any]:
        """Read the study; importances take time, so they wait until there are a tenth more values."""
        from bounce.report.content import content

        with open_study(self._target, self._study) as opened:
            valued = sum(trial.value is not None for trial in opened.trials)
            fits = self._importance is None or {each.name for each in self._importance.parameters} == {
                parameter.name for parameter in opened.space.parameters
            }
            if not fits or valued < self._valued or valued >= FRESH * self._valued + 1 or opened.done:
                self._importance, self._valued = opened.importance(), valued
            return content(_source(self._target, self._study, opened), self._importance, live=True)


def _source(target: Path, study: Path | None, opened: Study) -> Source:
    """Return what a report is made of."""
    from bounce.cli.words import change
    from bounce.report.content import Source
    from bounce.spec.document import load

    spec = load(target) if target.suffix.lower() == ".toml" else None
    where = [str(target), *([] if study is None else ["--study", str(study)])]
    by_hand = spec is None or (spec.command is None and spec.objective is None)
    commands = ["ask", "tell"] if by_hand else ["run"]
    ends = {"tell": " results.csv"}
    resume = [shlex.join(["bounce", command, *where]) + ends.get(command, "") for command in commands]
    return Source(target.stem if spec is None else spec.name, opened, spec, change, resume)


def _print_parameters(found: Importance, most: int) -> None:
    shown = found.parameters[:most]
    width = max(len("parameter"), *(len(_name(each.name)) for each in shown))
    print(f"{'parameter':<{width}}  {'total':>5}  {'(5 % - 95 %)':>12}  {'first':>5}  {'data':>5}")
    for each in shown:
        low, high = each.total_interval
        interval = f"({100 * low:.0f} % - {100 * high:.0f} %)"
        bar = "#" * round(BAR * each.total)
        verdict = "" if each.verdict == "matters" else each.verdict
        shares = f"{_percent(each.total)}  {interval:>12}  {_percent(each.first)}  {_percent(each.data)}"
        print(f"{_name(each.name):<{width}}  {shares}  {' '.join(filter(None, (bar, verdict)))}".rstrip())
    left = found.parameters[most:]
    if left:
        print(f"... and {len(left)} more, {_at_most(left[0].total)}: --most shows them")
    _print_substitutes(shown)


def _at_most(share: float) -> str:
    """Return a bound on shares, given the largest of them."""
    return "each below 0.1 %" if share < 0.001 else f"each at most {100 * share:.1f} %"


def _print_substitutes(shown: Sequence[Influence]) -> None:
    groups = {frozenset([each.name, *each.substitutes]): each for each in reversed(shown) if each.substitutes}
    if groups:
        print("\nnot told apart: the trials do not say which parameter of a line does the part of the first")
    for each in reversed(groups.values()):
        names = [_name(name) for name in (each.name, *each.substitutes[:SUBSTITUTES])]
        more = len(each.substitutes) - SUBSTITUTES
        last = f"one of {more} more" if more > 0 else names.pop()
        print(f"  {', '.join(names)} or {last}")


def _print_bins(bins: tuple[Bin, ...]) -> None:
    if not bins:
        print("\nevery variable has a bin of its own")
        return
    print("\nthe bins of the search: variables that move together")
    for each in bins:
        print(f"  {_percent(each.total)}  {', '.join(map(_name, each.names))}")
        for part in each.parts:
            print(f"         {_percent(part.total)}  {', '.join(map(_name, part.names))}")


def _percent(share: float) -> str:
    return f"{100 * share:>3.0f} %"


def _name(name: str) -> str:
    from bounce.text import printable

    return printable(name)
