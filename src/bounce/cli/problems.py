"""Commands about the problems of the paper: a demo, benchmarks and their data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bounce.cli.outputs import check_folder, check_picture


def demo(
    evals: Annotated[int, typer.Option(min=1, help="Number of evaluations.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the run.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the picture goes (PNG, SVG or PDF).")] = Path("bounce-demo.png"),
) -> None:
    """Look for a binary sequence of length 50 with low autocorrelation, and draw how it went."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    import bounce
    from bounce.benchmarks import Labs

    check_picture(out)
    problem = Labs(50)
    console = Console(stderr=True)
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("best {task.fields[best]}"), console=console) as progress:
        task = progress.add_task("LABS 50D", total=evals, best="none yet")
        best = float("inf")

        def show(trial: bounce.Trial) -> None:
            nonlocal best
            best = min(best, trial.value if trial.value is not None else best)
            progress.update(task, advance=1, best=f"{best:.4f}")

        result = bounce.minimize(problem, problem.space, budget=evals, seed=seed, callbacks=[show])

    from bounce.report.plots import convergence

    assert result.best is not None
    assert result.best.value is not None
    sequence = "".join("+" if on else "-" for on in result.best.point.values())
    print(f"best value {result.best.value:.6f} (merit factor {-result.best.value:.4f}; 8.17 is the best known)")
    print(f"best point {sequence}")
    convergence(result.trials, out, title=f"Bounce on LABS, 50 binary variables, seed {seed}")
    print(f"picture    {out}")


data = typer.Typer(help="List and fetch the data files of the benchmarks.", no_args_is_help=True)


@data.command("list")
def data_list() -> None:
    """Show every data file: whether it is there, its size, its licence and its source."""
    from rich.filesize import decimal

    from bounce.benchmarks.data import files, find

    for file in files():
        path = find(file)
        size = file.size if path is None else path.stat().st_size
        shown = "size unknown" if size is None else decimal(size)
        print(f"{file.name:<12}{'missing' if path is None else 'present':<10}{shown:<14}licence: {file.licence}")
        print(f"    file    {path or file.file}")
        print(f"    source  {file.source}")


@data.command("fetch")
def data_fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Which files; all that have an address by default."),
    ] = None,
) -> None:
    """Bring data files from their public sources, and check that they are what they should be."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TimeElapsedColumn, TransferSpeedColumn

    from bounce.benchmarks.data import DataFile, fetch, fetchable, files

    wanted = files(names) if names else fetchable()
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        tasks: dict[str, TaskID] = {}

        def show(file: DataFile, done: int, total: int | None) -> None:
            if file.name not in tasks:
                tasks[file.name] = progress.add_task(file.name, total=None)
            progress.update(tasks[file.name], completed=done, total=total)

        paths = fetch(wanted, show)
    for path in paths:
        print(path)


def benchmark(
    name: Annotated[str, typer.Argument(help="The problem, such as labs50; the word list shows all.")],
    randomized: Annotated[bool, typer.Option("--randomized", help="The published randomised version.")] = False,
    evals: Annotated[int, typer.Option(min=1, help="Evaluations per run.")] = 200,
    batch: Annotated[int, typer.Option(min=1, help="Trials per ask.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, help="Number of runs, with seeds 0, 1, ...")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Traces: FILE-seed0.jsonl, ...; named after the problem by default.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace traces of the same name.")] = False,
) -> None:
    """Run Bounce on a problem of the paper, write a trace per seed, and print how good it got."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn
    from rich.table import Table

    from bounce import benchmarks
    from bounce.benchmarks.traces import existing, record_all, summaries
    from bounce.errors import InvalidInput

    if name == "list":
        print("\n".join(benchmarks.names()))
        return
    out = out or Path(f"{name}{'-randomized' if randomized else ''}.jsonl")
    if out.is_dir() or not out.parent.is_dir():
        raise InvalidInput(f"traces need a file name in an existing folder, not {str(out)!r}")
    check_folder(out.parent)
    benchmarks.load(name, randomized)  # what is wrong with it is said before anything runs
    old = existing(out)
    if old and not overwrite:
        raise InvalidInput(f"there is {old[0]} already: choose another --out, or --overwrite all traces of that name")
    for path in old:
        path.unlink()
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"{name}, {seeds} seed{'s' * (seeds > 1)}", total=seeds * evals)

        def show(done: int) -> None:
            progress.update(task, completed=done)

        traces = record_all(name, randomized, evals, batch, range(seeds), jobs, out, show)
    table = Table("evaluations", "mean best", "standard error", "lowest", "highest", title=out.stem)
    for row in summaries(traces):
        numbers = (row.mean, row.error, row.lowest, row.highest)
        table.add_row(str(row.evaluations), *(f"{number:.6g}" for number in numbers))
    Console().print(table)
    for trace in traces:
        print(trace.path)
