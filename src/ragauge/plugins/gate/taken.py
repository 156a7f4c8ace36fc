"""The looks that a gate has taken, stored as tags of its jobs' MLflow runs and counted by the next look."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ragauge.contract.errors import ConfigError, DataError
from ragauge.plugins.gate.looks import level_of, repeated_p
from ragauge.plugins.gate.rules import Gate, Look
from ragauge.track import LoggedRun, Reader, Tracker

_TAG = "gate_look"
OWN_TAG = "judge_looks"


@dataclass(frozen=True)
class Taken:
    """A past look: `number`, on so many topics of at most `most`, and its p corrected for looks.

    p_pass is of the check's failing, p_fail of its passing: below alpha either is decided.
    """

    number: int
    topics: int
    most: float
    alpha: float
    p_pass: float
    p_fail: float
    run_id: str

    @classmethod
    def read(cls, run: LoggedRun, tag: str) -> Taken:
        """The look in a run's tag; DataError for a tag not written by ragauge."""
        try:
            return cls(**json.loads(run.tags[tag]), run_id=run.run_id)
        except (ValueError, TypeError) as error:
            raise DataError(f"run {run.run_id[:8]}: its tag {tag} is no look of a gate: {error}") from error

    def __str__(self) -> str:
        return f"look {self.number} on {self.topics:,} topics (run {self.run_id[:8]})"


@dataclass(frozen=True)
class Stand:
    """A look of one check, and its earlier looks at fewer topics each, in order."""

    look: Look
    topics: int
    most: float
    earlier: Sequence[Taken] = ()

    @property
    def shares(self) -> list[float]:
        """The shares of the largest number of topics at this look and the earlier ones.

        A look that is not known of is taken to have been at equal steps between those that are.
        """
        known = [(0, 0), *((one.number, one.topics) for one in self.earlier), (self.look.number, self.topics)]
        numbers, topics = zip(*known, strict=True)
        return [float(n) / self.most for n in np.interp(np.arange(1, self.look.number + 1), numbers, topics)]

    @property
    def notes(self) -> list[str]:
        """Notes on earlier looks and on assumptions."""
        numbers = {one.number for one in self.earlier}
        lacking = [(n, share) for n, share in enumerate(self.shares[:-1], 1) if n not in numbers]
        return [
            *(f"earlier: {one}" for one in self.earlier),
            *(
                f"look {n} is not in this MLflow: taken to have been on {share * self.most:,.0f} topics"
                for n, share in lacking
            ),
        ]

    def level(self, alpha: float) -> float:
        """The one-sided level of this look that keeps all looks together at alpha."""
        return level_of(alpha, self.shares)

    def corrected(self, p_pass: float, p_fail: float) -> tuple[float, float]:
        """The p corrected for this look and the earlier ones; a past decision stands."""
        ways = ((p_pass, [one.p_pass for one in self.earlier]), (p_fail, [one.p_fail for one in self.earlier]))
        own, other = (min([repeated_p(p, self.shares), *before]) for p, before in ways)
        return own, other


@dataclass
class Looks:
    """The looks of a gate at one job, read from MLflow by its run's name and experiment.

    reader: None where there is no MLflow yet. run_id: that of the job's run, which `write` tags; "" before it is run.
    """

    gate: Gate
    reader: Reader | None
    name: str
    experiment: str
    run_id: str = ""
    notes: list[str] = field(default_factory=list)
    _new: dict[str, dict[str, float]] = field(default_factory=dict)

    def stand(self, check: Sequence[object], topics: float) -> tuple[str, Stand]:
        """This look of a check at so many topics, and its MLflow tag.

        `check` are the values that make it the same check in another run. ConfigError for a look that goes
        backward, has more topics than the largest number, or another largest number or alpha than before.
        """
        gate, look = self.gate, self.gate.look
        assert look is not None
        if not topics >= 1:
            raise DataError(f"{look}: run {self.run_id[:8]} has no number of topics")
        named = json.dumps([self.name, gate.series, *check], ensure_ascii=True)
        tag = f"{_TAG}.{hashlib.blake2b(named.encode(), digest_size=8).hexdigest()}"
        found: dict[int, Taken] = {}  # by topics: asked again on as many it is the same look, and the newest counts
        for run in [] if self.reader is None else self.reader.tagged(tag, None, self.experiment):
            one = Taken.read(run, tag)
            found.setdefault(one.topics, one)
        same = found.pop(int(topics), None)
        newest = max(found.values(), key=lambda one: one.topics, default=same)
        if same is not None:
            look = Look(same.number, max(look.of, same.number))
        most = float(gate.max_topics or (newest.most if newest else topics * look.of / look.number))
        start = f"{look} on {topics:,.0f} topics"
        if newest is not None and newest.most != most:
            raise ConfigError(f"{start}: max_topics={most:g}, and it was {newest.most:g} at {newest}")
        if newest is not None and newest.alpha != gate.alpha:
            raise ConfigError(f"{start}: alpha={gate.alpha:g}, and it was {newest.alpha:g} at {newest}")
        if topics > most:
            raise ConfigError(f"{start}: at most {most:g} (max_topics) were to be looked at")
        for one in found.values():
            if one.number >= look.number or one.topics >= topics:
                after = max(other.number for other in found.values()) + 1
                then = f"the next is look {after} on more topics" if after <= look.of else "that was the last"
                raise ConfigError(f"{start}: {one} was before; {then}, and a new series has a name of its own (series)")
        return tag, Stand(look, int(topics), most, sorted(found.values(), key=lambda one: one.number))

    def take(self, tag: str, stand: Stand, p_pass: float, p_fail: float) -> None:
        """Keeps a look, with its corrected p, until `write`."""
        self.notes += stand.notes
        self._new[tag] = {
            "number": stand.look.number, "topics": stand.topics, "most": stand.most, "alpha": self.gate.alpha,
            "p_pass": p_pass, "p_fail": p_fail,
        }  # fmt: skip

    def write(self) -> None:
        """Tags the job's run with its looks."""
        assert self.reader is not None
        tracker = Tracker(self.reader.uri, self.experiment)
        for tag, values in self._new.items():
            tracker.tag_runs(tag, {self.run_id: json.dumps(values)})


class OwnLooks(Looks):
    """The looks of one job at its own growing sample (`judge.looks`), including the current one.

    topics: those that were judged at each look so far, of at most `most` in `of` looks. least: the smallest p of each
    check at the looks before the last. The job's run holds all of it in one tag.
    """

    def __init__(
        self, gate: Gate, of: int, most: int, topics: Sequence[int], least: Mapping[str, Sequence[float]]
    ) -> None:
        super().__init__(gate, None, "", "")
        self.of, self.most, self.topics, self.least = of, most, topics, least

    @classmethod
    def of_run(cls, gate: Gate, run: LoggedRun) -> OwnLooks | None:
        """The looks of a run's job; None if it judged its topics at once. DataError for a tag of another program."""
        if (found := run.tags.get(OWN_TAG)) is None:
            return None
        try:
            return cls(gate, **json.loads(found))
        except (ValueError, TypeError) as error:
            raise DataError(f"run {run.run_id[:8]}: its tag {OWN_TAG} holds no looks: {error}") from error

    def stand(self, check: Sequence[object], topics: float) -> tuple[str, Stand]:
        """This look of a check. It counts the job's own sample, not `topics`, which both runs judged."""
        key = hashlib.blake2b(json.dumps(check).encode(), digest_size=8).hexdigest()
        p = self.least.get(key, (1.0, 1.0))
        *before, now = self.topics
        earlier = [Taken(i, n, self.most, self.gate.alpha, p[0], p[1], "") for i, n in enumerate(before, 1)]
        return key, Stand(Look(len(self.topics), self.of), now, float(self.most), earlier)

    def least_now(self) -> dict[str, tuple[float, float]]:
        """The smallest p of each check after this look."""
        return {key: (one["p_pass"], one["p_fail"]) for key, one in self._new.items()}

    def tag(self) -> dict[str, str]:
        """The tag of the job's run that holds its looks."""
        held = {"of": self.of, "most": self.most, "topics": list(self.topics), "least": dict(self.least)}
        return {OWN_TAG: json.dumps(held)}
