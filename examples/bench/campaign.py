"""Twelve days at the bench: four experiments a day, mistakes included, every step a `bounce` command.

    python examples/bench/campaign.py [FOLDER]

The laboratory is simulated. It writes one sheet, lab.csv, which is told again every evening.
"""

from __future__ import annotations

import csv
import math
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

HERE = Path(__file__).parent
SPEC = "coupling.toml"
ASK = ("ask", SPEC, "--format", "csv")
Row = dict[str, str]


def reaction(row: Row) -> float:
    """Return the yield of one experiment in per cent, with an error of up to half a per cent."""
    best = {"water": 80, "ethanol": 70, "toluene": 95, "DMF": 85}[row["solvent"]]
    share = {"water": 0.35, "ethanol": 0.6, "toluene": 0.75, "DMF": 1.0}[row["solvent"]]
    share *= {"K2CO3": 0.85, "Cs2CO3": 1.0, "Et3N": 0.6, "NaOH": 0.45}[row["base"]]
    share *= {"none": 0.4, "PPh3": 0.75, "XPhos": 1.0, "SPhos": 0.95}[row["ligand"]]
    share *= math.exp(-(((float(row["temperature"]) - best) / 35) ** 2))
    share *= math.exp(-((math.log(float(row["catalyst"]) / 1.5) / 2) ** 2))
    share *= 1 - math.exp(-float(row["hours"]) / 3)
    share *= 1.0 if row["degassed"] == "true" else 0.9
    settings = ",".join(row[name] for name in row if name not in ("id", "value", "comment"))
    return round(98 * share + zlib.crc32(settings.encode()) / 2**32 - 0.5, 1)


class Bench:
    """A folder with a spec, a study and a sheet, and the experiments of today."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sheet: list[Row] = []
        self.today: list[Row] = []

    def bounce(self, *words: str, refused: bool = False) -> str:
        """Run a command, print it with what it says, and return its output."""
        process = self.start(*words)
        return self.end(process, refused=refused)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command."""
        print("$", "bounce", *words, flush=True)
        command = [sys.executable, "-m", "bounce", *words]
        return subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def end(self, process: subprocess.Popen[str], *, refused: bool = False) -> str:
        """Wait for a command, and print what it says."""
        out, err = process.communicate()
        print(out + err, end="", flush=True)
        if (process.returncode != 0) != refused:
            raise SystemExit(f"the command ended with {process.returncode}")
        return out

    def take(self, table: str) -> None:
        """Write the experiments that were asked for into the sheet."""
        self.today = list(csv.DictReader(table.splitlines()))
        for row in self.today:
            row["comment"] = ""
        self.sheet += self.today

    def run(self, *rows: Row) -> None:
        """Run experiments, and write their yields into the sheet."""
        for row in rows or self.today:
            row["value"] = str(reaction(row))
        self.save()

    def save(self) -> None:
        """Save the sheet, as a spreadsheet would."""
        with (self.folder / "lab.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self.sheet[0])
            writer.writeheader()
            writer.writerows(self.sheet)

    def edit(self, old: str, new: str) -> None:
        """Edit the spec."""
        print(f"(in {SPEC}: {old} becomes {new})")
        path = self.folder / SPEC
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def morning(bench: Bench, day: int) -> None:
    """Put things right, and ask for the experiments of the day."""
    if day == 2:
        typo = bench.sheet[3]  # a digit was lost yesterday
        typo["value"] = str(reaction(typo))
        bench.save()
        bench.bounce("correct", SPEC, typo["id"], typo["value"], "--reason", "a digit was lost")
        bench.bounce("history", SPEC)
    if day == 6:  # a new solvent, and a new flask for what failed yesterday
        bench.edit('"toluene"]', '"toluene", "DMF"]')
        bench.bounce(*ASK, refused=True)  # says what would change
        broken = next(row for row in bench.sheet if row["value"] == "failed")
        bench.bounce("retry", SPEC, broken["id"], "--reason", "a new flask")
        bench.take(bench.bounce(*ASK, "--change"))
        bench.run(broken)
    elif day == 8:  # a colleague reads along
        asking = bench.start(*ASK)
        reading = [bench.start(*words) for words in (("status", SPEC), ("trials", SPEC))]
        reading.append(bench.start("export", SPEC, "for-the-group.csv"))
        for process in reading:
            bench.end(process)
        bench.take(bench.end(asking))
    elif day == 12:
        bench.take(bench.bounce(*ASK, "-n", "6"))  # the two that were given back, too
    else:
        bench.take(bench.bounce(*ASK))


def evening(bench: Bench, day: int) -> None:
    """Run the experiments of the day, and tell what became of them."""
    if day == 1:
        bench.run()
        bench.today[3]["value"] = bench.today[3]["value"][1:]  # a typo
        bench.save()
    elif day == 4:
        low = bench.today[1]
        low["temperature"] = str(int(low["temperature"]) - 4)
        low["comment"] = "the thermostat was 4 degrees low"
        bench.run()
        bench.bounce("tell", SPEC, "lab.csv", refused=True)
        bench.bounce("tell", SPEC, "lab.csv", "--as-used")
        return
    elif day == 5:
        bench.run(*bench.today[:3])
        bench.today[3]["value"] = "failed"
        bench.today[3]["comment"] = "the flask broke"
        bench.save()
    elif day == 7:
        bench.run(*bench.today[:2])
        bench.bounce("withdraw", SPEC, *(row["id"] for row in bench.today[2:]), "--reason", "half a day only")
    else:
        bench.run()
    bench.bounce("tell", SPEC, "lab.csv")  # the whole sheet: what was told before is no change


def main(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in (SPEC, "notebook.csv", "ideas.csv"):
        shutil.copy(HERE / name, folder)
    bench = Bench(folder)

    print("before the first day: what is known, and what the chemist believes in")
    bench.bounce("add", SPEC, "notebook.csv", refused=True)  # one row is hotter than the spec allows
    bench.bounce("add", SPEC, "notebook.csv", "--skip-invalid", "--reason", "notebook 7")
    bench.bounce("enqueue", SPEC, "ideas.csv")
    for day in range(1, 13):
        print(f"\nday {day}")
        morning(bench, day)
        evening(bench, day)

    print("\nafter the last day")
    bench.bounce("history", SPEC)
    bench.bounce("status", SPEC)
    bench.bounce("export", SPEC, "campaign.csv")
    best = bench.bounce("best", SPEC).split()[2]
    print(f"best yield {best} %")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "campaign"))
