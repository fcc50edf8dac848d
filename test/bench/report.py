"""Pairs of runs, and the table that is made of them."""

import dataclasses
import statistics


@dataclasses.dataclass
class Row:
    """One line of the table; texts but for ratio and reached."""

    what: str
    size: str
    rival: str
    ours: str
    rivals: str = ""
    ratio: float | None = None
    goal: str = ""
    reached: bool | None = None


def in_turns(pairs, rival, ours, note):
    """Run both in turns; return their results as two lists.

    A machine's speed drifts, so what is compared runs side by side, and each
    goes first as often as the other.  One round warms the caches and is not
    counted.
    """
    contenders = [([], rival), ([], ours)]
    for _, run in contenders:
        run()
    for turn in range(pairs):
        note(f"pair {turn + 1} of {pairs}")
        for results, run in contenders[::1 if turn % 2 == 0 else -1]:
            results.append(run())
    return contenders[0][0], contenders[1][0]


def median_ratio(ours, rivals):
    """The median of the pairs' ratios."""
    return statistics.median(our / their
                             for our, their in zip(ours, rivals))


def compared(what, size, rival, ours, rivals, form, goal, at_least=False):
    """A row of paired results: medians, median ratio, verdict.

    goal is the limit of the ratio, None if there is none.
    """
    ratio = median_ratio(ours, rivals)
    if goal is None:
        text, reached = "", None
    else:
        text = f"{'>=' if at_least else '<='} {goal:.2f}x"
        # What is printed is what is judged.
        shown = round(ratio, 2)
        reached = shown >= goal if at_least else shown <= goal
    return Row(what, size, rival, form(statistics.median(ours)),
               form(statistics.median(rivals)), ratio, text, reached)


def measured(what, size, value, form, goal=None, rival="", rivals=None):
    """A row of one figure of ours against a limit, with or without a rival.
    """
    return Row(what, size, rival, form(value),
               "" if rivals is None else form(rivals),
               None if rivals is None else value / rivals,
               "" if goal is None else f"<= {form(goal)}",
               None if goal is None else value <= goal)


def seconds(value):
    return f"{value:.3f} s" if value < 1 else f"{value:.2f} s"


def milliseconds(value):
    return f"{value:.1f} ms"


def rows_text(rows):
    return f"{rows:,} rows"


HEADINGS = ("what", "size", "instead of", "pg_evidence", "instead", "ratio",
            "goal", "reached")


def digits(row):
    """Two decimals, more where they would be zero."""
    return 2 if row.ratio >= 0.01 else 4


def table(rows):
    """The table in Markdown."""
    lines = [HEADINGS, ("---",) * len(HEADINGS)]
    for row in rows:
        verdict = {None: "", True: "yes", False: "no"}[row.reached]
        ratio = "" if row.ratio is None else f"{row.ratio:.{digits(row)}f}x"
        lines.append((row.what, row.size, row.rival, row.ours, row.rivals,
                      ratio, row.goal, verdict))
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |"
        for line in lines)
