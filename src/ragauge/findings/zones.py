"""Zones of the IR score with a guarantee: where a score says enough to do without an LLM."""

from __future__ import annotations

from typing import Any

from ragauge.contract.finding import Finding, Found, Founds, Section, Shown, Text
from ragauge.contract.jobs import Jobs
from ragauge.show.formats import share


class ZonesFound(Finding):
    """Where a score says enough to do without an LLM."""

    name = "zones"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """The zones of the fit; their metrics and table are those of `thresholds`."""
        return Found(found["thresholds"].estimates.zones) if "thresholds" in found else None

    def show(self, jobs: Jobs, value: Any, found: Founds) -> Shown:
        """Both zones, or why there is none."""
        return Shown([Section("Zones with a guarantee", zone_blocks(value))], [zones_line(value)])


def zone_blocks(value: Any) -> list[Text]:
    """What each zone promises, or why there is none."""
    blocks = [
        Text(
            f"Where a score says enough to do without an LLM: with {100 * value.confidence:g} % confidence, at "
            f"most {100 * value.alpha:g} % of the answers in a zone are not what it says. That holds for new "
            "topics of the same kind, answered and judged as here."
        )
    ]
    for zone, says in ((value.right, "right"), (value.lack, "a lack of information")):
        if zone.n:
            blocks.append(
                Text(
                    f"{zone.side.capitalize()} {zone.value:.2f} at most {100 * value.alpha:g} % of the answers "
                    f"are not {says}. {share(zone.share)} of all answers lie there; {share(zone.missed)} of "
                    f"these were not {says}."
                )
            )
        else:
            blocks.append(Text(f"There is no zone for “{says}”: {zone.why_none}."))
    blocks.append(
        Text(
            "Each side holds by itself with this confidence. Thresholds are tested from strict to loose (Learn "
            "then Test), a topic with several answers counts once, and a missing verdict counts as missed. "
            "Assumed: topics are independent draws, and answers with higher scores are not less often right.",
            "small",
        )
    )
    return blocks


def zones_line(zones: Any) -> str:
    """Both zones with what they promise, or that there is none, in a line for the terminal."""
    parts = [
        f"{zone.side} {zone.value:.2f} ({zone.share:.1%} of the answers) at most {zones.alpha:.0%} not {says}"
        if zone.n
        else f"none for {says}"
        for zone, says in ((zones.right, "right"), (zones.lack, "lack"))
    ]
    return f"zones ({zones.confidence:.0%} confidence): {'; '.join(parts)}"
