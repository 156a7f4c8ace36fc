"""Whether a judge can be believed, by its classes of the probes and by verdicts that are all alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ragauge.answering.judges import LexicalJudge
from ragauge.answering.judges.probes import Probes
from ragauge.contract.answering import ASKED
from ragauge.contract.checks import require_flag
from ragauge.contract.errors import RagaugeError
from ragauge.contract.finding import Finding, Found, Founds, JobFinding, Shown
from ragauge.contract.jobs import Job, Jobs
from ragauge.contract.metrics import Metric
from ragauge.estimate.agreement import kappa_estimate
from ragauge.estimate.intervals import LEVEL
from ragauge.estimate.summary import with_interval
from ragauge.findings.cost import RECORDED, costs_of_replies

if TYPE_CHECKING:
    from ragauge.contract.measures import AnswerMeasureInfo
    from ragauge.contract.settings import Settings

_ENTRY = "about_the_judge"  # of job.json: the sentences
_LEAST = 0.4  # kappa below which a judge is not to be believed
_ALIKE_FROM = 10  # verdicts; fewer may well be alike
_WORD_RULES = "Classes by word rules (judge=lexical), which understand nothing: choose judge=... for these answers."


class JudgeTried(JobFinding):
    """Agreement of the job's judge with the known classes of the probes, where `judge.probes` asks for it."""

    name = "judge_tried"
    metrics = (
        Metric(
            "judge_probes_kappa{,_lo,_hi}",
            "Cohen's kappa of the judge's classes and the known classes of the probes that could be read, in [-1, 1]",
            "Cohen's kappa, the judge errs more on half of the topics",
            label="judge's kappa on the probes",
            unit="signed",
            group="judge",
            listed="compare",
        ),
        Metric("judge_probes", "number of answers of known class that the judge was asked about", group="judge"),
        Metric("judge_probes_read", "number of probes with a readable verdict", group="judge"),
    )

    def check(self, settings: Settings, measures: Sequence[AnswerMeasureInfo]) -> None:
        """ConfigError for probes that are neither true nor false."""
        require_flag("judge.probes", settings.judge.get("probes", False))

    def compute(self, job: Job, found: Founds) -> Found | None:
        """Costs of the probes, with sentences on the judge; None where there is none to try."""
        judge = job.pipeline.components.judge
        if not _judges(job):
            said = _by_rules(job)
            return Found(({}, said), record={_ENTRY: said}) if said else None
        value, metrics, costs = "", dict[str, float](), dict[str, float]()
        if job.settings.judge.get("probes", False):
            try:
                verdicts = Probes(judge).judged(judge, job.pipeline.tools)
            except RagaugeError as error:  # the job's own verdicts are there
                value = f"The probes of the judge were not asked: {error}"
            else:
                costs = costs_of_replies(verdicts, "judge_")
                metrics = agreement(verdicts)
                value = _sentence(_name_of(job), metrics)
        of_judge = [*filter(None, [value]), *_by_rules(job)]
        alike = [f"Every verdict of this job is {label}." for label in _alike(job.outcomes)]
        return Found((costs, of_judge + alike), metrics, record={_ENTRY: of_judge})

    def needs(self, job: Job, answers: pd.DataFrame | None) -> list[pd.DataFrame]:
        """The requests about the probes."""
        judge = job.pipeline.components.judge
        if answers is None or judge.kind != "chat" or not job.settings.judge.get("probes", False):
            return []
        asked = Probes(judge).needs(judge, job.pipeline.tools)
        return [] if asked is None else [asked.assign(who="judge, probes")]

    def show(self, job: Job, value: tuple[dict[str, float], list[str]], found: Founds) -> Shown:
        """The sentences."""
        return Shown(lead=value[1])


class JudgesTried(Finding):
    """The sentences on the judges of a sweep's jobs."""

    name = "judges_tried"

    def compute(self, jobs: Jobs, found: Founds) -> Found | None:
        """Each sentence once; and one on the jobs whose verdicts are all alike."""
        told = [line for record in jobs.records for line in record.added.get(_ENTRY, [])]
        alike: dict[int, list[str]] = {}
        for (system, n_tokens), rows in jobs.outcomes.groupby(["system", "n_tokens"], sort=False):
            for label in _alike(rows):
                alike.setdefault(label, []).append(f"{system}, {n_tokens:,} tokens")
        told += [f"Every verdict is {label} in: {'; '.join(names)}." for label, names in alike.items()]
        return Found(list(dict.fromkeys(told))) if told else None

    def show(self, jobs: Jobs, value: list[str], found: Founds) -> Shown:
        """The sentences at the head of the report, on the terminal and in the note of the MLflow run."""
        return Shown(lead=value)


def _judges(job: Job) -> bool:
    of = job.pipeline.components
    return of.llm.kind != "none" and of.judge.kind not in ("none", RECORDED)


def _name_of(job: Job) -> str:
    judge: Any = job.pipeline.components.judge
    chosen = str(job.record.choices.get("judge", "?"))
    return f"{judge.model_name} ({chosen})" if judge.kind == "chat" else chosen


def agreement(verdicts: pd.DataFrame) -> dict[str, float]:
    """The metrics of `Probes.judged`; without a kappa where no verdict could be read."""
    read = verdicts.dropna(subset="label")
    counted = {"judge_probes": float(len(verdicts)), "judge_probes_read": float(len(read))}
    if read.empty:
        return counted
    known, said = (read[name].to_numpy(dtype="int64") for name in ("known", "label"))
    kappa = with_interval("judge_probes_kappa", kappa_estimate(known, said, read["qid"], LEVEL))
    return counted | {name: value for name, value in kappa.items() if value == value}


def _sentence(name: str, metrics: dict[str, float]) -> str:
    """`Judge qwen: kappa 0.02 (-0.10 to 0.15) on 30 probes; not to be believed.`."""
    n, read = int(metrics["judge_probes"]), int(metrics["judge_probes_read"])
    if not read:
        return f"Judge {name}: none of {n} probes could be read; not to be believed."
    on = f"{n} probes" if read == n else f"{read} of {n} probes, the others could not be read"
    kappa, lo, hi = (metrics.get(f"judge_probes_kappa{end}", float("nan")) for end in ("", "_lo", "_hi"))
    ends = f" ({lo:.2f} to {hi:.2f})" if lo == lo else ""
    said = f"kappa {round(kappa, 2) + 0.0:.2f}{ends} on {on}" if kappa == kappa else on  # no -0.00
    return f"Judge {name}: {said}{'.' if kappa >= _LEAST and lo > 0 else '; not to be believed.'}"


def _alike(outcomes: pd.DataFrame) -> list[int]:
    """The class that all verdicts have, if they are enough."""
    labels = outcomes["label"].dropna() if "label" in outcomes else pd.Series(dtype="Int8")
    return [] if len(labels) < _ALIKE_FROM or labels.nunique() > 1 else [int(labels.iloc[0])]


def _by_rules(job: Job) -> list[str]:
    """Names what word rules did in the place of an LLM: the answers, their classes, or both."""
    of = job.pipeline.components
    answers, classes = of.llm.kind == "embedded", isinstance(of.judge, LexicalJudge)
    if answers:
        both, judge = (" and classes", ", judge=lexical") if classes else ("", "")
        return [f"Answers{both} by word rules (llm={job.record.choices.get('llm')}{judge}): no LLM was asked."]
    return [_WORD_RULES] if classes and of.llm.kind in (*ASKED, RECORDED) else []
