"""Races over topics that were added because of an earlier race: the best of all is kept."""

from __future__ import annotations

from known_truth.rows import SEED, Row, percent
from plugins.race.race_simulation import MARGIN, Setting, races_with_additions


def _told(setting: Setting, first: int, trials: int) -> str:
    found = races_with_additions(setting, first, trials, SEED)
    return (
        f"best dropped in {percent(found.wrong)}; left more than the margin below the best in {percent(found.short)}; "
        f"{percent(found.calls)} of the answers; intervals of means hold {percent(found.means)}, of differences "
        f"{percent(found.differences)}"
    )


SECTIONS: dict[str, list[Row]] = {
    "Races: topics added because the best system lost on the first ones": [
        Row(
            f"{setting.shape}, {first:,} topics first",
            f"{setting.systems} systems, {setting.topics:,} topics in two strata, best {100 * (setting.lead or 0):g} "
            f"points ahead over all, margin {MARGIN:g}",
            "best dropped in at most 5 %, intervals hold at least 95 %",
            "another race, whose error adds up",
            lambda trials, args=(setting, first): _told(*args, trials),  # type: ignore[misc]
            trials,
        )
        for setting, first, trials in (
            (Setting(2, 600, MARGIN + 0.001), 400, 200),
            (Setting(2, 600, MARGIN + 0.001), 200, 200),
            (Setting(5, 600, MARGIN + 0.001), 400, 100),
            (Setting(5, 600, 0.1), 400, 60),
        )
    ],
}
