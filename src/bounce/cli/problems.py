"""Problems: commands for the benchmarks of the paper, with a demo and their data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bounce.cli.help import Command
from bounce.cli.outputs import check_folder, check_plot, free_name, replacing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bounce.paper.traces import Setup, Trace

DEMO = Path("bounce-demo.png")


def demo(
    evals: Annotated[int, typer.Option(min=1, metavar="N", help="Run this many evaluations.")] = 200,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="The seed of the run.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The plot to write, a PNG, SVG or PDF file. The default is bounce-demo.png, or the next free name.",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the plot if it already exists.")] = False,
) -> None:
    """Run a demo with 50 binary variables, and plot its values.

    It searches for a binary sequence of length 50 with low autocorrelation.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    import bounce
    from bounce.benchmarks import Labs

    plot = out or (DEMO if overwrite else free_name(DEMO))
    check_plot(plot, overwrite=overwrite)
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
    with replacing(plot) as part:
        convergence(result.trials, part, title=f"Bounce on LABS, 50 binary variables, seed {seed}")
    print(f"plot       {plot}")


data = typer.Typer(help="List and download the data files of the benchmarks.", no_args_is_help=True)


@data.command("list", cls=Command, epilog="Example: bounce data list")
def data_list() -> None:
    """List the data files.

    The list says whether each file is present, its size, its licence and its source.
    """
    from rich.filesize import decimal

    from bounce.benchmarks.data import files, find

    for file in files():
        path = find(file)
        size = file.size if path is None else path.stat().st_size
        shown = "size unknown" if size is None else decimal(size)
        print(f"{file.name:<12}{'missing' if path is None else 'present':<10}{shown:<14}licence: {file.licence}")
        print(f"    file    {path or file.file}")
        print(f"    source  {file.source}")


@data.command("fetch", cls=Command, epilog="Example: bounce data fetch dna")
def data_fetch(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="The files to download. The default is all that can be downloaded automatically."
        ),
    ] = None,
) -> None:
    """Download data files and verify their checksums."""
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
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The problem, such as labs50. Use list to list all of them.")
    ],
    randomized: Annotated[
        bool, typer.Option("--randomized", help="Use the randomised version of the problem, as published.")
    ] = False,
    evals: Annotated[int, typer.Option(min=1, metavar="N", help="Run this many evaluations per seed.")] = 200,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Ask for this many trials at a time.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Run this many seeds: 0, 1, ...")] = 1,
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Make this many runs at the same time.")] = 1,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="The method of Bounce: default, paper or 0.1.")
    ] = "default",
    methods: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="Run these optimizers, such as bounce,casmopolitan,tpe. Use list to list all of them."
        ),
    ] = "bounce",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write traces to FILE-seed0.jsonl, ... The default is the name of the problem.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue runs that were stopped; give the other options as before.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace all traces of the same name.")] = False,
) -> None:
    """Run optimizers on a problem of the paper.

    It writes a trace (one line per trial) for each seed, and prints the best values.
    """
    from bounce import baselines, benchmarks
    from bounce.errors import InvalidInput
    from bounce.method import Method
    from bounce.paper.traces import Setup, existing, path_of

    if name == "list":
        print("\n".join(benchmarks.names()))
        return
    if methods == "list":
        print("\n".join(f"{key:<28}{about}" for key, about in baselines.names().items()))
        return
    if resume and overwrite:
        raise InvalidInput("give either --resume or --overwrite")
    chosen = list(dict.fromkeys(word.strip() for word in methods.split(",")))
    if method != "default" and "bounce" not in chosen:
        raise InvalidInput(f"--method {method} is for Bounce, and --methods has no bounce")
    out = out or Path(f"{name}{'-randomized' if randomized else ''}.jsonl")
    if out.is_dir():
        raise InvalidInput(f"{out} is a folder, but traces need a file name")
    check_folder(out.parent)
    problem = benchmarks.load(name, randomized)  # refuses an unknown problem before anything runs
    options = {"budget": evals, "batch_size": batch, "method": Method.of(method).document()}
    setups = {key: Setup(name, options, randomized, key) for key in chosen}
    for setup in setups.values():
        setup.optimizer(problem.space, 0)  # refuses an unknown method, or one that does not take such variables
    files = {key: out if methods == "bounce" else out.with_name(f"{out.stem}-{key}{out.suffix}") for key in chosen}
    old = [path for file in files.values() for path in existing(file)] if not resume else []
    if old and not overwrite:
        raise InvalidInput(f"{old[0]} already exists: use --resume or --overwrite, or choose another --out")
    for path in old:
        path.unlink()
    runs = [(setups[key], seed, path_of(files[key], seed)) for seed in range(seeds) for key in chosen]
    traces = _recorded(runs, f"{name}, {', '.join(chosen)}", jobs, resume=resume)
    found = {key: [traces[path_of(files[key], seed)] for seed in range(seeds)] for key in chosen}
    _print_summaries(found, out.stem, evals)


def _recorded(runs: Sequence[tuple[Setup, int, Path]], title: str, jobs: int, *, resume: bool) -> dict[Path, Trace]:
    """Make runs behind a progress bar, and return their traces by file."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    from bounce.live.words import count
    from bounce.paper.traces import record_all

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        total = sum(setup.options["budget"] for setup, _, _ in runs)
        task = progress.add_task(f"{title}, {count(len({seed for _, seed, _ in runs}), 'seed')}", total=total)

        def show(finished: int) -> None:
            progress.update(task, completed=finished)

        return {trace.path: trace for trace in record_all(runs, jobs=jobs, progress=show, resume=resume)}


def _print_summaries(traces: Mapping[str, Sequence[Trace]], title: str, evaluations: int) -> None:
    """Print the best values over the seeds, for several methods the best in the end first, and the files."""
    from bounce.cli.table import show_table
    from bounce.paper.traces import summaries

    found = {key: summaries(own, evaluations) for key, own in traces.items()}
    several = ["method"] if len(found) > 1 else []
    head = (*several, "evaluations", "mean best", "standard error", "lowest", "highest")
    rows = []
    for key in sorted(found, key=lambda key: found[key][-1].mean):
        for row in found[key]:
            numbers = (row.mean, row.error, row.lowest, row.highest)
            own = [key] * len(several)
            rows.append((*own, str(row.evaluations), *(f"{number:.6g}" for number in numbers)))
    show_table(head, rows, title=title)
    for own_traces in traces.values():
        for trace in own_traces:
            print(trace.path)
