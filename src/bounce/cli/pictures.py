"""Pictures: commands that say and show what matters in a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bounce.cli.studies import AnyPath, AsJson, StudyPath, open_study

if TYPE_CHECKING:
    from bounce.optimizer.importance import Bin, Importance

SHOWN = 10  # pairs that are printed
BAR = 20  # characters of a bar for all of the variance


def importance(
    target: AnyPath,
    study: StudyPath = None,
    most: Annotated[int, typer.Option("--most", "-n", min=1, metavar="N", help="Print this many parameters.")] = 20,
    bins: Annotated[bool, typer.Option("--bins", help="Print also the bins of the search and their shares.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print how much each parameter matters, alone and with others.

    The shares are of the variance over the whole space, by a model of all results. The column `data` is the importance
    from the data alone.
    """
    import json
    from dataclasses import asdict

    from bounce.errors import InvalidInput
    from bounce.optimizer.importance import POOR

    with open_study(target, study) as opened:
        found = opened.importance()
    if found is None:
        raise InvalidInput(f"{target} has too few different values: importances need at least 8 values")
    if as_json:
        print(json.dumps(asdict(found)))
        return
    _print_parameters(found, most)
    if found.pairs:
        print("\nthe strongest pairs: what two parameters do only together")
        for pair in found.pairs[:SHOWN]:
            print(f"  {_percent(pair.share)}  {' x '.join(map(_name, pair.names))}")
    if bins:
        _print_bins(found.bins)
    quality = _percent(found.quality).strip()
    print(f"\nby a model of {found.observations} results, which predicts {quality} of the variance")
    if found.quality < POOR:
        print("these shares are not to be relied on: the model predicts little. More results help")


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
        print(f"{_name(each.name):<{width}}  {shares}  {bar or verdict}".rstrip())
    left = len(found.parameters) - most
    if left > 0:
        print(
            f"... and {left} more, each below {_percent(found.parameters[most - 1].total).strip()}: --most shows them"
        )


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
