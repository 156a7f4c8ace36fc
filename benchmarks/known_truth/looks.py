"""Gates that are looked at as topics come: how often they err, and how many of the topics they take."""

from __future__ import annotations

from collections.abc import Callable

import plugins.gate.looks_simulation as sim
from known_truth.rows import SEED, Row, percent

_NONE = "no such number"
_WANTED = "4 to 5.6 %"
_AT = {
    "5 equal looks": sim.FIVE,
    "5 looks at 12, 37, 45, 86, 100 %": sim.UNEQUAL,
    "10 equal looks": sim.TEN,
    "10 unequal looks, the first at 5 %": sim.UNEQUAL_TEN,
}
_TWO = list(_AT)[:2]
_DRAWS: dict[str, tuple[sim.Draw, int]] = {
    "score, normal differences": (sim.normal(-0.05), 500),
    "score, losses lognormal": (sim.lognormal(-0.05), 500),
    "share, a fifth of the topics differ": (sim.yes_or_no(-0.05), 500),
}


def _errs(draw: sim.Draw, n: int, looks: str, naive: bool) -> Callable[[int], str]:
    def measure(trials: int) -> str:
        passed, regressed, _ = sim.decided(draw, n, 0.05, _AT[looks], trials, SEED, naive)
        return f"{percent(passed)}; {percent(regressed)}"

    return measure


def _planned(times: float, difference: float, of: int, looks: str) -> Callable[[int], str]:
    def measure(trials: int) -> str:
        n, power, used, fixed = sim.planned(times, difference, _AT[looks], trials, SEED)
        assert n == of
        return f"{percent(used)} of the topics; passes in {percent(power)}, in one look at all in {percent(fixed)}"

    return measure


def _stopped(difference: float, trials: int) -> str:
    found = sim.stopped(difference, 500, sim.FIVE, trials, SEED)
    return (
        f"{percent(found['used'])} of the topics; share held in {percent(found['share'])} (judging all: "
        f"{percent(found['share_whole'])}); limits of the difference miss {percent(found['below'])} and "
        f"{percent(found['above'])}; its bias {100 * found['bias']:+.1f} points"
    )


_TIMES = {0.0: "no distance from the tolerance", 1.0: "the planned distance", 2.0: "twice the planned distance"}
_USED = {0.0: "nearly all", 1.0: "79 to 85 % of the topics", 2.0: "44 to 50 % of the topics"}

SECTIONS = {
    "Looks: gates that are asked again as topics come": [
        *(
            Row(f"worse by its tolerance of 0.05, passes at a look; is called regressed: {what}",
                f"{looks} of {n} topics", _WANTED, _NONE, _errs(draw, n, looks, False))
            for what, (draw, n) in _DRAWS.items() for looks in (_AT if what.endswith("normal differences") else _TWO)
        ),
        *(
            Row("the same looks at 5 % each, worse by its tolerance of 0.05, passes; is called regressed",
                f"{looks} of 500 topics, normal differences", "for comparison", "not in use",
                _errs(sim.normal(-0.05), 500, looks, True))
            for looks in _AT
        ),
        *(
            Row("worse by its tolerance of 0.05, passes at a look: share, a growing sample is judged",
                f"{looks} of 500 judged topics, 800 in all", _WANTED, _NONE,
                lambda trials, looks=looks: percent(  # type: ignore[misc]
                    sim.sampled_passed(800, 500, _AT[looks], trials, SEED)))
            for looks in _TWO
        ),
        Row("a gate of 12 comparisons has a regression at a look, no difference", "5 equal looks of 200 topics",
            "at most 5 %", _NONE, lambda trials: percent(sim.gates(200, sim.FIVE, trials, SEED)), 400),
        *(
            Row(f"a share of 0.6 passes a minimum of 0.6 at a look{at}", f"{looks} of 300 topics", wanted, before,
                lambda trials, looks=looks, naive=naive: percent(  # type: ignore[misc]
                    sim.minimum_passed(0.6, 300, _AT[looks], trials, SEED, naive)))
            for at, wanted, before, naive in (
                ("", "about 2.5 %", _NONE, False), (", 95 % intervals each time", "for comparison", "not in use", True),
            )
            for looks in ("5 equal looks", "10 equal looks")
        ),
        *(
            Row(f"a job that stops judging at the look that decides, {what}",
                "5 equal looks of 500 topics, tolerance 0.05",
                "share at least 93 %; each limit about 5 %", _NONE,
                lambda trials, difference=difference: _stopped(difference, trials), 2000)  # type: ignore[misc]
            for difference, what in ((0.0, "equal systems"), (-0.05, "at the tolerance"), (-0.1, "twice the tolerance"))
        ),
        *(
            Row(f"{what}: share of the topics until it is decided", f"{looks} of at most {n}, planned {difference:g}",
                _USED[times], _NONE, _planned(times, difference, n, looks))
            for times, what in _TIMES.items()
            for difference, n, looks in ((0.05, 101, _TWO[0]), (0.02, 620, _TWO[0]), (0.02, 620, "10 equal looks"))
        ),
    ],
}  # fmt: skip
