"""Planned numbers of topics and labels."""

from __future__ import annotations

import plugins.planning.labels_simulation as labels
import simulations.plan as sim
from known_truth.rows import FULL, SEED, Row, percent

_NONE = "no such number"

SECTIONS: dict[str, list[Row]] = {
    "Planner: the tests have the power that was planned": [
        *(
            Row(
                f"sign-flip test, differences of 0 on 60 % of the topics: power for {difference}",
                f"as many topics as planned for 80 % at 5 %{f' / {m}' if m > 1 else ''}",
                "78 to 85 %",
                _NONE,
                lambda trials, d=difference, m=m: "{1:.1%} with {0}".format(  # type: ignore[misc]
                    *sim.power_for_mean(d, m, trials, SEED)
                ).replace("%", " %"),
                FULL,
            )
            for difference, m in ((0.1, 1), (0.05, 1), (0.05, 10))
        ),
        *(
            Row(
                f"McNemar's test, {psi:.0%} of the topics discordant: power for {d}".replace("%", " %"),
                f"as many topics as planned for 80 % at 5 %{f' / {m}' if m > 1 else ''}",
                "78 to 85 %",
                _NONE,
                lambda trials, psi=psi, d=d, m=m: "{1:.1%} with {0}".format(  # type: ignore[misc]
                    *sim.power_for_shares(psi, d, m, trials, SEED)
                ).replace("%", " %"),
                FULL,
            )
            for psi, d, m in ((0.3, 0.1, 1), (0.3, 0.1, 10), (0.1, 0.1, 1))
        ),
        *(
            Row(
                "the difference that a sweep is said to detect: seen by the next one",
                f"{n} topics",
                "80 %, less what the spread varies by",
                _NONE,
                lambda trials, n=n: percent(sim.power_of_detectable(n, trials, SEED)),  # type: ignore[misc]
            )
            for n in (30, 120)
        ),
        *(
            Row(
                f"pilots whose plan has the power ({what}): from their spread; from its upper limit",
                f"pilots of {n} topics",
                "about half; at least 80 %",
                _NONE,
                lambda trials, n=n, shares=shares: "{}; {}".format(  # type: ignore[misc]
                    *map(percent, sim.pilots_with_power(n, shares, trials, SEED))
                ),
                trials,
            )
            for what, shares, n, trials in (
                ("IR score", False, 30, 1000),
                ("IR score", False, 120, 1000),
                ("right answers", True, 30, 200),
            )
        ),
    ],
    "Equivalence: two one-sided tests at 5 %, margin 0.03": [
        *(
            Row(
                f"{kind}: systems 0.03 apart that are called equivalent",
                "120; 500; 2,000 topics",
                "at most 5.5 %; where differences go one way up to 7.5 %",
                _NONE,
                lambda trials, kind=kind: "; ".join(  # type: ignore[misc]
                    percent(sim.said_equivalent(kind, 0.03, 0.03, n, trials, SEED)) for n in (120, 500, 2000)
                ),
                8000,
            )
            for kind in sim.KINDS
        ),
        *(
            Row(
                f"{kind}: systems without a difference that are called equivalent",
                "as many topics as planned for 80 %",
                "78 to 85 %",
                _NONE,
                lambda trials, kind=kind: "{1:.1%} with {0}".format(  # type: ignore[misc]
                    *sim.power_for_equivalence(kind, 0.03, trials, SEED)
                ).replace("%", " %"),
                8000,
            )
            for kind in list(sim.KINDS)[:2]
        ),
    ],
    "Planner: a pilot without a difference": [
        Row(
            f"{100 * rate:g} % of the topics lose {loss:g}, none of the pilot's does: power for {rate * loss:g}",
            f"pilots of {n} topics, enumerated",
            "it cannot tell; of what it is 80 % sure of at least 80 %",
            f"6 topics; {percent(before)}",
            lambda _, args=(n, rate, loss): "unknown; {:,} topics, {}".format(  # type: ignore[misc]
                *(x if x > 1 else percent(x) for x in sim.power_after_a_pilot_without_differences(*args))
            ),
            0,
        )
        for n, rate, loss, before in ((10, 0.1, 0.5, 0.1**6), (30, 0.03, 0.5, 0.0), (30, 0.03, 1.0, 0.0))
    ],
    "Planner: labels for an interval of a width": [
        *(
            Row(
                f"judged topics for a width of 0.1, prediction {what}: mean width; coverage of 95 %",
                "1,000 topics",
                "0.100; about 95 %",
                _NONE,
                lambda trials, slope=slope: (  # type: ignore[misc]
                    "{1:.3f} with {0}; {2:.1%}".format(
                        *labels.widths_of_planned_labels(1000, slope, 0.1, trials, SEED)
                    ).replace("%", " %")
                ),
                2000,
            )
            for what, slope in (("useful", 6.0), ("of little use", 1.0))
        ),
        Row(
            "pilots that plan enough human labels: as seen; with 80 % confidence",
            "60 topics labelled, the judge is wrong in one of ten",
            "about half; at least 80 %",
            _NONE,
            lambda trials: "{}; {}".format(*map(percent, labels.pilots_with_labels(60, trials, SEED))),
            200,
        ),
    ],
}
