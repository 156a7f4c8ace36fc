"""Looks at growing topics: levels against published tables and a brute-force twin, and what MLflow remembers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from logged_runs import LoggedRuns, questions
from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.gate import command
from ragauge.plugins.gate.bounds import check_settings
from ragauge.plugins.gate.ended import Asked, gate_runs
from ragauge.plugins.gate.looks import level_of, repeated_p, spent
from ragauge.plugins.gate.rules import Look, read_gate
from ragauge.plugins.gate.taken import OwnLooks, Stand, Taken
from ragauge.plugins.gate.verdicts import Check, GateResult
from ragauge.track import Reader, Tracker

FIVE = [0.2, 0.4, 0.6, 0.8, 1.0]


def test_five_equal_looks_have_the_published_boundaries() -> None:
    # Lan and DeMets, O'Brien-Fleming type, .025 on each side: as in the tables of Reboussin et al. (2000).
    found = [norm.isf(level_of(0.025, FIVE[:k])) for k in range(1, 6)]
    assert found == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=6e-4)
    # Two looks, the first at half: 2.963 and 1.969.
    assert [norm.isf(level_of(0.025, s)) for s in ([0.5], [0.5, 1.0])] == pytest.approx([2.963, 1.969], abs=6e-4)


def test_a_single_look_at_all_topics_has_the_whole_of_alpha() -> None:
    assert level_of(0.05, [1.0]) == pytest.approx(0.05, abs=1e-9)
    assert spent(0.05, 1.0) == pytest.approx(0.05)
    assert repeated_p(0.031, [1.0]) == pytest.approx(0.031, rel=1e-5)
    # At a tenth of the topics next to nothing is spent: the first of ten looks decides nothing.
    assert level_of(0.05, [0.05]) == 0


@pytest.mark.parametrize("shares", [[0.3, 0.35, 1.0], [0.1, 0.6, 0.62], [0.5, 0.9]])
def test_unequal_looks_err_as_often_as_is_spent(shares: list[float]) -> None:
    # The statistics of the looks are normal with the correlations sqrt(t_i / t_j).
    at = np.array(shares)
    correlations = np.sqrt(np.minimum.outer(at, at) / np.maximum.outer(at, at))
    limits = [norm.isf(level_of(0.05, shares[: k + 1])) for k in range(len(shares))]
    kept = multivariate_normal(np.zeros(len(at)), correlations, abseps=1e-8, releps=1e-8, maxpts=2_000_000)
    assert 1 - kept.cdf(np.array(limits)) == pytest.approx(spent(0.05, shares[-1]), abs=2e-5)


def test_the_corrected_p_is_below_alpha_where_p_is_below_the_level_of_the_look() -> None:
    for alpha in (0.001, 0.0125, 0.05, 0.3):
        assert repeated_p(level_of(alpha, FIVE[:3]), FIVE[:3]) == pytest.approx(alpha, rel=1e-4)
    found = [repeated_p(p, FIVE[:3]) for p in (0.0, 1e-5, 0.003, 0.05, 0.6)]
    assert found == sorted(found)
    assert found[-1] == 1


def test_looks_that_nobody_knows_of_are_taken_to_have_been_at_equal_steps() -> None:
    assert Stand(Look(3, 5), 300, 500).shares == pytest.approx([0.2, 0.4, 0.6])
    second = Taken(2, 120, 500.0, 0.05, 0.3, 1.0, "a" * 32)
    known = Stand(Look(4, 5), 300, 500, [second])
    assert known.shares == pytest.approx([0.12, 0.24, 0.42, 0.6])
    assert known.notes == [
        "earlier: look 2 on 120 topics (run aaaaaaaa)",
        "look 1 is not in this MLflow: taken to have been on 60 topics",
        "look 3 is not in this MLflow: taken to have been on 210 topics",
    ]
    # What was decided once stays decided.
    decided = Stand(Look(2, 5), 200, 500, [Taken(1, 100, 500.0, 0.05, 0.01, 1.0, "a" * 32)])
    assert decided.corrected(0.5, 0.5) == (0.01, 1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"look": "6/5"}, "gate.look='6/5': allowed are looks such as 2/5, from 1/1 to 20/20"),
        ({"look": "0/5"}, "gate.look='0/5': allowed are looks"),
        ({"look": "2 of 5 "}, None),
        ({"look": 2}, "gate.look=2: allowed are looks such as 2/5"),
        ({"look": "1/21"}, "gate.look='1/21': allowed are looks"),
        ({"max_topics": 500}, "gate.max_topics: it is of a look at growing topics; give gate.look=2/5"),
        ({"series": "pr-12"}, "gate.series: it is of a look at growing topics; give gate.look=2/5"),
        ({"look": "1/5", "max_topics": 1.5}, "gate.max_topics=1.5: allowed are integers from 2"),
        ({"look": "1/5", "series": 12}, "gate.series=12: allowed are a text (in quotes, if all digits)"),
    ],
)
def test_what_is_no_look_is_refused_in_one_line(given: dict[str, object], message: str | None) -> None:
    if message is None:
        assert read_gate({"f1": 0.5, **given}).look == Look(2, 5)
        return
    with pytest.raises(ConfigError) as refused:
        check_settings(read_gate({"f1": 0.5, **given}))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_bad_look_on_the_command_line_names_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["f1=0.5", "--look", "6", "of", "5"], "--look='6 of 5': allowed are looks such as 2/5"),
        (["f1=0.5", "--look", "1/5", "--max-topics", "1"], "--max-topics=1: allowed are integers from 2"),
        (["f1=0.5", "--look", "1/5", "--series", " "], "--series=' ': allowed are a text"),
        (["--look", "1/5"], "--look: they are of rules given here; give some"),
    ):
        assert command.main(["run", *words]) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main(["run", "--preset", "gold"])
    assert "invalid choice: 'gold'" in capsys.readouterr().err


# --- looks of a job at what it judges -----------------------------------------------------------------------


def test_a_run_holds_the_looks_of_its_job_and_what_was_decided_stays_so() -> None:
    gate = read_gate({"correct_share": 0.6})
    first = OwnLooks(gate, 5, 200, [40], {})
    key, stand = first.stand(("min", "correct_share", 0.6), 30)
    assert (stand.shares, str(stand.look)) == ([0.2], "look 1 of 5")
    first.take(key, stand, 1e-9, 1.0)
    second = OwnLooks(gate, 5, 200, [40, 81], first.least_now())
    run = SimpleNamespace(run_id="a" * 32, tags=second.tag())
    found = OwnLooks.of_run(gate, run)
    assert found is not None
    _, stand = found.stand(("min", "correct_share", 0.6), 30)
    assert stand.shares == pytest.approx([0.2, 0.405])
    assert stand.corrected(0.5, 0.5) == (1e-9, 1.0)
    assert found.stand(("max", "correct_share", 0.6), 30)[1].corrected(0.6, 0.6) == (1.0, 1.0)
    assert OwnLooks.of_run(gate, SimpleNamespace(run_id="", tags={})) is None
    for bad in ("no JSON", '{"of": 5}'):
        with pytest.raises(DataError, match="its tag judge_looks holds no looks"):
            OwnLooks.of_run(gate, SimpleNamespace(run_id="a" * 32, tags={"judge_looks": bad}))


# --- what MLflow remembers ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('looks') / 'mlflow.db'}"


class Growing:
    """A system and its baseline, measured on more and more topics."""

    def __init__(self, uri: str, experiment: str, mean: float = -0.05, spread: float = 0.2) -> None:
        rng = np.random.default_rng(3)
        self.logged = LoggedRuns(uri, experiment)
        self.base = rng.uniform(0.4, 0.6, 600)
        self.new = np.clip(self.base + mean + rng.normal(0, spread, 600), 0, 1)

    def runs(self, n: int) -> tuple[str, str]:
        rows = [questions({f"q{i:03}": float(x) for i, x in enumerate(v[:n])}) for v in (self.new, self.base)]
        return self.logged.job(rows[0], "new"), self.logged.job(rows[1], "base")

    def asked(self, runs: tuple[str, str], look: str, tolerance: float = 0.05, **more: object) -> GateResult:
        rules = {"ir_score": {"tolerance": tolerance}, "baseline": runs[1], "look": look, **more}
        return gate_runs(Asked(runs[0], read_gate(rules)), self.logged.uri)


def only(result: GateResult) -> Check:
    [check] = result.checks
    return check


def test_a_gate_that_is_asked_again_knows_of_its_earlier_looks(store: str) -> None:
    growing = Growing(store, "again")
    first, second = growing.runs(100), growing.runs(180)
    one = only(growing.asked(first, "1/5"))
    assert (one.verdict, one.look, one.looks, one.look_topics, one.max_topics) == ("inconclusive", 1, 5, 100, 500)
    assert one.level == pytest.approx(level_of(0.05, [0.2]))
    assert one.said.endswith(
        "; look 1 of 5, on 100 of at most 500 topics, one-sided level 1.2e-05: more topics may decide it"
    )
    # Asked twice on the same topics it is the same look, in another run of them, too.
    assert only(growing.asked(first, "1/5")) == one
    assert only(growing.asked(growing.runs(100), "2/5")).look == 1
    result = growing.asked(second, "2/5")
    two = only(result)
    assert two.level == pytest.approx(level_of(0.05, [0.2, 0.36]))  # the 500 are those of the first look
    assert (two.look_topics, two.max_topics) == (180, 500)
    assert "earlier: look 1 on 100 topics (run " in result.notes[-1]
    assert result.as_json()["checks"][0]["level"] == two.level
    # Other rules, and another series, are other gates.
    assert growing.asked(second, "1/5", tolerance=0.06).notes[1:] == []
    assert growing.asked(second, "1/5", series="other").notes[1:] == []


def test_a_look_that_goes_back_or_changes_the_plan_is_refused(store: str) -> None:
    growing = Growing(store, "refused")
    growing.asked(growing.runs(100), "2/5", max_topics=300)
    runs = {n: growing.runs(n) for n in (60, 200, 400)}
    before = r"look 2 on 100 topics \(run .{8}\)"
    for n, look, more, message in (
        (60, "2/5", {}, rf"^look 2 of 5 on 60 topics: {before} was before; the next is look 3 on more topics"),
        (200, "2/5", {}, rf"^look 2 of 5 on 200 topics: {before} was before; the next is look 3 on more topics"),
        (200, "2/2", {}, rf"^look 2 of 2 on 200 topics: {before} was before; that was the last, and a new series has"),
        (400, "3/5", {}, r"^look 3 of 5 on 400 topics: at most 300 \(max_topics\) were to be looked at$"),
        (200, "3/5", {"max_topics": 400}, rf"^look 3 of 5 on 200 topics: max_topics=400, and it was 300 at {before}$"),
        (200, "3/5", {"alpha": 0.1}, rf"^look 3 of 5 on 200 topics: alpha=0.1, and it was 0.05 at {before}$"),
    ):
        with pytest.raises(ConfigError, match=message):
            growing.asked(runs[n], look, **more)


def test_what_was_decided_stays_decided_and_looks_err_to_the_safe_side(store: str) -> None:
    growing = Growing(store, "decided", mean=-0.2)
    first = growing.runs(100)
    assert only(growing.asked(first, "2/5")).verdict == "regressed"
    growing.new[100:] = 1.0  # whatever comes now
    result = growing.asked(growing.runs(200), "3/5")
    assert only(result).verdict == "regressed"
    assert "no more topics are needed" in only(result).said


def test_a_minimum_is_looked_at_with_a_wider_interval(store: str) -> None:
    growing = Growing(store, "minimum", mean=0.0, spread=0.1)
    [run, _] = growing.runs(100)
    metrics = gate_runs(Asked(run, read_gate({"ir_score": 0.4})), store)
    wide = gate_runs(Asked(run, read_gate({"ir_score": 0.4, "look": "1/5"})), store)
    assert (only(metrics).verdict, only(metrics).look) == ("pass", 0)
    one, plain = only(wide), only(metrics)
    ratio = norm.isf(level_of(0.025, [0.2])) / norm.isf(0.025)
    assert one.value - one.lo == pytest.approx((plain.value - plain.lo) * ratio)
    assert one.hi - one.value == pytest.approx((plain.hi - plain.value) * ratio)
    # Decided as the wider interval says.
    assert one.verdict == ("pass" if one.lo >= 0.4 else "inconclusive")
    missed = only(gate_runs(Asked(run, read_gate({"ir_score": 0.9, "look": "1/5"})), store))
    assert missed.verdict == "missed"
    by_value = only(gate_runs(Asked(run, read_gate({"ir_score": {"min": 0.4, "by": "value"}, "look": "1/5"})), store))
    assert (by_value.verdict, by_value.look) == ("pass", 0)


def test_a_tag_that_is_no_look_is_named(store: str) -> None:
    growing = Growing(store, "broken")
    run, base = growing.runs(60)
    growing.asked((run, base), "1/5")
    [tag] = [name for name in Reader(store).run(run).tags if name.startswith("gate_look.")]
    Tracker(store, "broken").tag_runs(tag, {run: "5"})
    with pytest.raises(DataError, match=rf"^run {run[:8]}: its tag {tag} is no look of a gate"):
        growing.asked(growing.runs(120), "2/5")


def test_looks_are_not_of_a_sweeps_own_run_nor_of_two_jobs_of_one_name(store: str) -> None:
    ours = LoggedRuns(store, "sweeps")
    rows = questions({f"q{i}": 0.5 for i in range(20)})
    for number in range(2):
        ours.job(rows, "same", sweep_id="s", job=str(number))
    sweep = ours.sweep("s", {"predictor_ece": 0.1})
    gate = read_gate({"ir_score": 0.4, "look": "1/2"})
    with pytest.raises(ConfigError, match=r"^look: 2 jobs have the name same, so give the run id of one$"):
        gate_runs(Asked(sweep, gate), store)
    pooled = read_gate({"predictor_ece": 0.5, "look": "1/2"})
    with pytest.raises(ConfigError, match="--pooled: a sweep's own metrics have no number of topics"):
        gate_runs(Asked(sweep, pooled, pooled=True), store)
