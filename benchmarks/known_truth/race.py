"""Races: the best system is kept, the calls are few, and the intervals at the end hold."""

from __future__ import annotations

from known_truth.rows import SEED, Row, percent
from plugins.race.race_simulation import MARGIN, SHAPES, Setting, races

_NONE = "no races"
_BEST_DROPPED = "best dropped in at most 5 %, intervals hold at least 95 %"
_CALLS = "at most 40 % of the answers for 10 systems, 1,000 topics, 6 points"


def _told(setting: Setting, trials: int, intervals: int) -> str:
    found = races(setting, trials, SEED, intervals=intervals)
    parts = [] if setting.lead is None else [f"best dropped in {percent(found.wrong)}"]
    parts += [f"left more than the margin below the best in {percent(found.short)}"]
    parts += [f"{percent(found.calls)} of the answers"]
    if intervals:
        parts += [f"intervals of means hold {percent(found.means)}, of differences {percent(found.differences)}"]
    return "; ".join(parts)


def _row(what: str, setting: Setting, wanted: str, trials: int, intervals: int) -> Row:
    lead = "" if setting.lead is None else f", best {100 * setting.lead:g} points ahead"
    return Row(
        what,
        f"{setting.systems} systems, {setting.topics:,} topics{lead}, margin {MARGIN:g}",
        wanted,
        _NONE,
        lambda trials: _told(setting, trials, min(intervals, trials)),
        trials,
    )


_JUST = MARGIN + 0.001
_WORST = (
    *((shape, Setting(systems, 1000, _JUST, shape)) for systems in (10, 40) for shape in SHAPES),
    ("all others equal", Setting(2, 1000, _JUST)),
    ("all others equal", Setting(10, 4000, _JUST)),
    ("most topics are ties (latent correlation .98)", Setting(10, 1000, _JUST, likeness=0.98)),
    ("5 % are right", Setting(10, 1000, _JUST, share=0.05)),
    ("skewed values from 0 to 1, mean .55", Setting(10, 1000, _JUST, skewed=True)),
    ("skewed values from 0 to 1, mean .1", Setting(10, 1000, _JUST, share=0.1, skewed=True)),
)
_EQUAL = (
    *(("all systems equal", Setting(systems, 1000, None)) for systems in (10, 40)),
    ("evenly spread over 30 points, two best equal", Setting(40, 1000, None, "evenly spread over 30 points")),
)
_SIZES = tuple(
    ("all others equal" if shape is None else shape, Setting(systems, topics, lead, shape or "all others equal"))
    for shape, systems in ((None, 10), (None, 40), ("evenly spread over 30 points", 10))
    for lead in (0.06, 0.03)
    for topics in (500, 1000, 4000)
)

SECTIONS: dict[str, list[Row]] = {
    "Races: the best system is ahead by just more than the margin": [
        *(_row(what, setting, _BEST_DROPPED, 300 if setting.systems < 40 else 200, 60) for what, setting in _WORST),
        *(_row(what, setting, "intervals hold at least 95 %", 60, 20) for what, setting in _EQUAL),
    ],
    "Races: share of the grid's answers": [_row(what, setting, _CALLS, 40, 0) for what, setting in _SIZES],
}
