"""The stages of a job as a plan: the source of each read, the key of each output, and the existing outputs.

`Plan` resolves all reads in one pass over the list, from what the stages declare. A key is then worked out from
the digests of what was read, and nothing is made for it.

Keys hold digests of contents, and not the keys of the stages before. A changed title makes the chunks again, but equal
chunks have one index. Jobs share verdicts on equal answers. Answers stay where the evidence alone changed, since they
read two columns of the topics. The price: the key of a stage is known once what it reads is there. Where the store has
everything, all keys are known before any work; else the plan names what a stage waits for, and its key follows when
that was made. Keys made of keys would all be known at once, but every change of a file would make all stages after it
again. A frame that is never stored is made for its digest: it takes no time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from ragauge.contract.frames import Batches, content_digest
from ragauge.contract.stages import Read, Stage
from ragauge.store import Entry, Key, file_sha256

JOINED = "answer_values"  # the one frame that several stages make, each some rows


@dataclass
class Output:
    """The output of a stage: an entry of the store, frames that this process holds, or both.

    held: frames that are not stored, or that differ here from their stored form (replies cost nothing now).
    """

    entry: Entry | None = None
    held: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    _digests: dict[Read, str] = field(default_factory=dict, init=False, repr=False)

    @property
    def stored(self) -> Entry:
        """The entry; KeyError where there is none."""
        if self.entry is None:
            raise KeyError(f"{', '.join(self.held)}: not stored")
        return self.entry

    def frame(self, name: str) -> pd.DataFrame:
        """A frame that the stage made."""
        return self.held[name] if name in self.held else self.stored.frame(name)

    def rows(self, name: str) -> pd.DataFrame | Batches:
        """The rows of a frame, in batches if there are many."""
        return self.held[name] if name in self.held else self.stored.rows(name)

    def n_rows(self, name: str) -> int:
        """Number of rows of a frame; a stored one is not read."""
        return len(self.held[name]) if name in self.held else self.stored.n_rows(name)

    def digest(self, read: Read) -> str:
        """The digest of the read."""
        if read not in self._digests:
            self._digests[read] = self._digest(read)
        return self._digests[read]

    def _digest(self, read: Read) -> str:
        if read.folder:
            return self.stored.digest
        if read.name in self.held or read.columns:
            return read_digest(read, self.frame(read.name))
        return self.stored.frame_digest(read.name)


def read_digest(read: Read, frame: pd.DataFrame) -> str:
    """The digest of the columns that a stage reads of a frame."""
    return content_digest(read.of(frame))


@dataclass(eq=False)
class Step:
    """One stage in a plan.

    sources: by each of its reads the steps that make it. output: None until it is there.
    """

    stage: Stage
    sources: Mapping[Read, tuple[Step, ...]]
    output: Output | None = None

    @property
    def done(self) -> Output:
        """The output; KeyError before it is made."""
        if self.output is None:
            raise KeyError(f"stage {self.stage.label}: not made yet")
        return self.output

    @property
    def waits_for(self) -> str | None:
        """The first stage that must run before the key is known; None if all reads exist."""
        for sources in self.sources.values():
            for source in sources:
                if source.output is None:
                    return source.stage.label if source.stage.stored else source.waits_for
        return None

    def key(self, models: Mapping[str, Any], given: Mapping[str, pd.DataFrame] = MappingProxyType({})) -> Key:
        """The key of the output: the stage, its version, its parameters with `models`, and the digests of its reads.

        given: frames by name, in the place of those that were made.
        """
        read = {
            str(read): read_digest(read, given[read.name]) if read.name in given else sources[-1].done.digest(read)
            for read, sources in self.sources.items()
        }
        stage = self.stage
        files = stage.component.files() if stage.of_files and stage.component is not None else {}
        of_files = {role: file_digest(path) for role, path in files.items()}
        return Key(stage.name, stage.version, {**stage.params(), **models}, {**of_files, **read})


class Plan:
    """The steps of a job in order. Where two steps make the same frame, the steps after them read the later one's."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self.steps: list[Step] = []
        self._makers: dict[str, tuple[Step, ...]] = {}  # by frame, and by "<label>/" of a folder
        self._before: dict[str, dict[str, tuple[Step, ...]]] = {}  # the makers as a stage of this name met them
        for stage in stages:
            self._before.setdefault(stage.name, dict(self._makers))
            step = Step(stage, {read: self._found(read, stage.label) for read in stage.reads})
            self.steps.append(step)
            for name in stage.makes or [f"{stage.label}/"]:
                others = self._makers.get(name, ()) if name == JOINED else ()
                self._makers[name] = (*others, step)

    def makers(self, read: Read) -> tuple[Step, ...]:
        """The steps that make the read: the last one, or all that make rows of it; none for an unknown frame."""
        makers = self._before[read.before] if read.before else self._makers
        return makers.get(f"{read.name}/" if read.folder else read.name, ())

    def _found(self, read: Read, label: str) -> tuple[Step, ...]:
        if not (found := self.makers(read)):
            raise KeyError(f"stage {label} reads {str(read)!r}, which no stage before it makes")
        return found

    def step(self, label: str) -> Step:
        """The step of the stage with this label or name."""
        found = [step for step in self.steps if label in (step.stage.label, step.stage.name)]
        exact = [step for step in found if step.stage.label == label]
        return (exact or found)[0]

    def of_stage(self, stage: Stage) -> Step:
        """The step of a stage."""
        return next(step for step in self.steps if step.stage is stage)

    def towards(self, wanted: Iterable[Step]) -> list[Step]:
        """The unfinished steps among the wanted ones and all that they read, directly or not, in order."""
        needed: set[Step] = set()
        waiting = list(wanted)
        while waiting:
            step = waiting.pop()
            if step.output is None and step not in needed:
                needed.add(step)
                waiting += [source for sources in step.sources.values() for source in sources]
        return [step for step in self.steps if step in needed]

    def without(self, leave_out: Callable[[Stage], bool]) -> Plan:
        """The plan without some stages that no other reads; keeps the other outputs."""
        kept = [step for step in self.steps if not leave_out(step.stage)]
        plan = Plan([step.stage for step in kept])
        for step, before in zip(plan.steps, kept, strict=True):
            step.output = before.output
        return plan


def file_digest(path: Path) -> str:
    """SHA-256 (hex) of a file's bytes; read once per process while the file stays as it is."""
    stat = path.stat()
    return _file_digest(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=64)
def _file_digest(path: Path, size: int, mtime_ns: int) -> str:
    return file_sha256(path)
