"""The command that measures the floor of a store: `calibrate`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memoranda.cli import output
from memoranda.cli.exits import DONE
from memoranda.cli.options import Store, command, store
from memoranda.cli.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from memoranda.reports import Calibration

_BAR = 24  # columns of the longest bar, so that two stand side by side in 80
_PARTS = "▏▎▍▌▋▊▉"  # eighths of a column


@command(store)
def calibrate(
    store: Store,
    sample: Annotated[int, typer.Option("--sample", metavar="N", help="How many memories to ask for at most.")] = 200,
    apply: Annotated[bool, typer.Option("--apply", help="Use the floor that is found from now on.")] = False,
) -> int:
    """Measure from which confidence on a question counts as answered, on the store's own memories.

    Asks for a sample of them in some of their own words, with the memory there
    and without it, and shows where the two part. The floor that is proposed
    still answers 95 % of the first; --apply records it for the whole store.

    Examples:
        memoranda calibrate
        memoranda calibrate --sample 500 --apply
    """
    with store.engine() as engine, progress("asking") as advance:
        found = engine.calibrate(
            tenant=store.tenant,
            persona=store.persona,
            user=store.user,
            sample=sample,
            apply=apply,
            progress=advance,
        )
    if store.as_json:
        output.print_json(output.jsonable(found))
        return DONE
    output.show(_histogram(found))
    print()
    output.show(output.pairs_table(_effect(found)))
    print()
    if found.applied:
        print("The new floor holds from now on, where the preset does not name one of its own.")
    else:
        print("Nothing was changed: --apply records the new floor.")
    return DONE


def _histogram(found: "Calibration") -> "Table":
    """Return a line for each confidence that was seen, with a bar for the answers and one for the wrong hits."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("confidence", no_wrap=True)
    table.add_column("with an answer", width=_BAR, no_wrap=True, overflow="crop", style="green")
    table.add_column("without one", width=_BAR, no_wrap=True, overflow="crop", style="yellow")
    counts = list(zip(found.answered_histogram, found.absent_histogram, strict=True))
    seen = [place for place, pair in enumerate(counts) if any(pair)]
    most, bins = max(max(pair) for pair in counts), len(counts)
    floor_at = min(int(found.floor * bins), bins - 1)
    for place in range(min(*seen, floor_at), max(*seen, floor_at) + 1):
        answered, absent = counts[place]
        mark = " < floor" if place == floor_at else ""
        table.add_row(f"{place / bins:.2f}{mark}", _bar(answered, most), _bar(absent, most))
    return table


def _bar(count: int, most: int) -> str:
    whole, part = divmod(round(count / most * _BAR * 8), 8)
    return "█" * whole + (_PARTS[part - 1] if part else "")


def _effect(found: "Calibration") -> list[tuple[str, Any]]:
    def effect(floor: float, answered: float, absent: float) -> str:
        return f"{floor:.3f}  answers {answered:.1%} with an answer, {absent:.1%} without one"

    return [
        ("embedder", found.embedder or "none: found by words only"),
        ("questions", f"{found.questions:,}, each with its answer and without"),
        ("told apart", f"{found.auroc:.3f} (AUROC: 0.5 is chance, 1 always)"),
        ("floor now", effect(found.floor_before, found.answered_before, found.absent_answered_before)),
        ("new floor", effect(found.floor, found.answered, found.absent_answered)),
        ("distance", None if found.distance is None else f"{found.distance:.3f}  95% of the answers are nearer"),
    ]
