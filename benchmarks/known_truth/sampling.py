"""Few judged topics, and labels by people."""

from __future__ import annotations

import simulations.sampling as sim
from known_truth.rows import SEED, Row, percent


def _shares(found: dict[str, float]) -> str:
    return (
        f"mean {percent(found['coverage'])}, least {percent(found['least'])}; sums {found['sum_lo']:.3f} to "
        f"{found['sum_hi']:.3f}; effective {found['effective']:.0f}"
    )


def _pair(found: dict[str, float]) -> str:
    return (
        f"{percent(found['rejected'])}; covers {percent(found['coverage'])}; McNemar on the judged alone "
        f"{percent(found['mcnemar'])}"
    )


def _people(found: dict[str, float]) -> str:
    if found["refused"] == 1:
        return "always refused"
    kept = f"bias {100 * found['bias']:+.1f} points, covers {percent(found['coverage'])}"
    return f"{kept}, refused {percent(found['refused'])}"


def _with_earlier(n_topics: int, n: int, correlation: float, harsh: float, shared: bool, trials: int) -> str:
    given = sim.earlier_verdicts(n_topics, n, correlation, harsh, trials, SEED, shared)
    alone = sim.earlier_verdicts(n_topics, n, None, 0.0, trials, SEED)
    return (
        f"{given['effective']:.2f} (without {alone['effective']:.2f}); covers {percent(given['coverage'])}; bias "
        f"{100 * given['bias']:+.1f} points, error {100 * given['error']:.1f} (without {100 * alone['error']:.1f})"
    )


def _answered(kind: str, n_topics: int, n: int, trials: int) -> str:
    told = []
    for target, found in sim.answered_sample(kind, n_topics, n, trials, SEED).items():
        called = f", equal systems called different {percent(found['rejected'])}" * (target == "population")
        told.append(
            f"{target}: mean {percent(found['coverage'])}, least {percent(found['least'])}, difference "
            f"{percent(found['difference'])}{called}, width {found['width']:.3f} (plain sample {found['plain']:.3f}), "
            f"sums 1.000 to {1 + found['sum']:.3f}"
        )
    return "; ".join(told)


_KINDS = {
    "useful": "the IR score says something of the class",
    "useless": "the IR score says nothing",
    "rare": "2 % are right",
    "nearly perfect": "the IR score decides the class but of 1 in 100",
    "perfect": "the IR score decides the class",
}

# 300 trials each: a class without a label was 0.
_PEOPLE_BEFORE = (
    "+5.7; 99.3 %; 0.189", "+2.0; 91.7 %; 0.118", "+0.2; 96.0 %; 0.096",
    "+3.3; 98.0 %; 0.298", "+1.3; 95.7 %; 0.185", "+0.2; 96.0 %; 0.121",
)  # fmt: skip


def _of_a_judge(errs: float, n: int, trials: int) -> str:
    bias, held, width = sim.human_shares_of_a_judge(errs, n, trials, SEED)
    return f"{100 * bias:+.1f}; {percent(held)}; {width:.3f}"


SECTIONS: dict[str, list[Row]] = {
    "Few judged topics: class shares": [
        Row(
            "coverage over the five classes, sum of the shares, effective topics for class 5",
            f"{design}, {n} of {n_topics:,} topics judged",
            "94 to 97 %; sums of 1; uniform within a tenth or so of neyman",
            before,
            lambda trials, design=design, n=n, n_topics=n_topics: _shares(  # type: ignore[misc]
                sim.sampled_shares(design, n_topics, n, trials, SEED)
            ),
            trials,
        )
        for design, n_topics, n, trials, before in (
            (
                "uniform", 500, 30, 400,
                "mean 96.5 %, least 95.0 %; sums 0.957 to 1.063; effective 57",
            ),
            (
                "uniform", 7404, 200, 300,
                "mean 95.3 %, least 94.7 %; sums 0.997 to 1.007; effective 373",
            ),
            (
                "neyman", 7404, 200, 300,
                "mean 94.7 %, least 93.3 %; sums 0.994 to 1.007; effective 415",
            ),
        )
    ],
    "Few answered topics: class shares and paired differences, predictor fitted on them": [
        Row(
            f"{_KINDS[kind]}: coverage of the classes and of the difference of two equal systems",
            f"{n} of {n_topics:,} topics answered and judged",
            "93 to 97 %; sums of 1; no wider than the plain sample where the score says something",
            "all topics were answered",
            lambda trials, args=(kind, n_topics, n): _answered(*args, trials),  # type: ignore[misc]
            trials,
        )
        for kind, n_topics, n, trials in (
            *(("useful", n_topics, n, 120) for n_topics in (500, 7404) for n in (50, 100, 200)),
            ("useless", 500, 50, 100),
            *((kind, *size, 100) for kind in list(_KINDS)[2:] for size in ((500, 50), (7404, 200))),
        )
    ],
    "Few judged topics: verdicts of an earlier run": [
        Row(
            f"{what}: effective topics by judged ones, coverage, bias and error of the share of right answers",
            f"{n} of {n_topics:,} topics judged, IR score correlated .35",
            wanted,
            "no such verdicts: the figures without",
            lambda trials, args=(n_topics, n, correlation, harsh, shared): _with_earlier(*args, trials),  # type: ignore[misc]
            trials,
        )
        for what, correlation, harsh, shared, wanted, sizes in (
            ("correlated .7", 0.7, 0.0, False, "93 to 97 %, more topics", ((50, 500, 400), (100, 500, 400))),
            (
                "as good, and half of the right are called 4",
                *(0.7, 0.5, False, "93 to 97 %, more topics", ((100, 500, 100),)),
            ),
            (
                "useless",
                *(0.0, 0.0, False, "93 to 97 %, hardly fewer", ((50, 500, 200), (100, 500, 100), (200, 500, 100))),
            ),
            (
                "for comparison, correlated .7, of the judged topics alone (which is refused)",
                *(0.7, 0.0, True, "no use: too narrow", ((50, 500, 150), (100, 500, 150), (200, 500, 100))),
            ),
        )
        for n, n_topics, trials in sizes
    ],
    "Few judged topics: paired difference of right answers, rejected at 5 %": [
        Row(
            what,
            f"{design}, {n} of {n_topics:,} topics judged",
            wanted,
            "the figure of McNemar beside: it was the test",
            lambda trials, args=(design, n_topics, n, effect, spread): _pair(  # type: ignore[misc]
                sim.paired_sample(*args, trials, SEED)
            ),
            4000 if (design, n) == ("neyman", 100) else 300,
        )
        for what, design, n_topics, n, effect, spread, wanted in (
            ("equal systems that differ by stratum", "neyman", 2000, 400, 0.0, 0.2, "at most 5 %"),
            ("equal systems that differ by stratum", "neyman", 2000, 100, 0.0, 0.2, "at most 5 %"),
            ("equal systems that differ by stratum", "uniform", 2000, 200, 0.0, 0.2, "at most 5 %"),
            ("equal systems", "uniform", 500, 30, 0.0, 0.0, "at most 5 %"),
            ("10 points apart", "uniform", 2000, 200, 0.1, 0.0, "more than McNemar"),
        )
    ],
    "Labels by people: share of right answers": [
        *(
            Row(
                f"80 % are right, the judge errs on {100 * errs:g} %: bias in points, coverage, mean width",
                f"{n} of 300 answers labelled at random",
                "no bias; at least 93 %",
                before,
                lambda trials, args=(errs, n): _of_a_judge(*args, trials),  # type: ignore[misc]
                500,
            )
            for (errs, n), before in zip(
                ((errs, n) for errs in (0.0, 0.1) for n in (20, 40, 100)), _PEOPLE_BEFORE, strict=True
            )
        ),
        *(Row(
            what,
            f"{n} of 300 answers labelled {how}",
            wanted,
            before,
            lambda trials, args=(n, drawn, share, errors): _people(  # type: ignore[misc]
                sim.human_corrected(*args, trials, SEED)
            ),
            150,
        )
        for what, n, drawn, how, share, errors, wanted, before in (
            (
                "10 % are right, the judge errs on 5 %", 20, "random", "at random", 0.1, (0.05, 0.05),
                "no bias", "bias -2.7 points, covers 96.7 % (60 trials)",
            ),
            (
                "50 % are right, the judge passes 30 % of the wrong", 40, "right",
                "where the judge says right", 0.5, (0.3, 0.05),
                "refused", "bias +25.3 points, covers 11.7 % (60 trials)",
            ),
            (
                "30 % are right, the judge passes 30 % of the wrong", 40, "halves",
                "half of them where the judge says right", 0.3, (0.3, 0.05),
                "no bias", "bias -0.5 points, covers 100.0 % (60 trials)",
            ),
        ))
    ],
    "Labels by people: paired difference, the judge kinder to one system": [
        Row(
            what,
            f"{n} of 400 topics labelled for both",
            wanted,
            "no such test; that of the verdicts beside",
            lambda trials, args=(n, effect): "rejects {}, covers {}; of the verdicts {}".format(  # type: ignore[misc]
                *(
                    percent(sim.human_difference(*args, (0.3, 0.05), trials, SEED)[key])
                    for key in ("rejected", "coverage", "judge")
                )
            ),
            600,
        )
        for what, n, effect, wanted in (
            ("equal systems: rejected at 5 %", 30, 0.0, "at most 5 %"),
            ("equal systems: rejected at 5 %", 100, 0.0, "at most 5 %"),
            ("15 points apart: rejected at 5 %", 100, 0.15, "often"),
        )
    ],
}  # fmt: skip
