"""The record of a job, `job.json` in its folder: what it was asked for, where its results are, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, get_type_hints

from ragauge.contract.errors import DataError
from ragauge.contract.output_files import write_json
from ragauge.contract.plain_files import NotPlain, read_json_object

RECORD_FILE = "job.json"

Place = Annotated[str, "a path or an address"]
RunId = Annotated[str, "the id of an MLflow run"]
Digest = Annotated[str, "the digest of a store entry"]


@dataclass(kw_only=True)
class Record:
    """The record of a job of any kind; a subclass declares the fields of its kind.

    Fields without a default are in every file. The others are written where they differ from their default.

    status: FAILED until the job has ended well, then FINISHED or DRY RUN. role: empty for a measured job. choices: the
    chosen option of every config group. attempt: the attempt at the sweep. error, error_type: of a failed job. added:
    the entries of packages and arguments, by their own names. folder: where the record lies; not in the file.
    """

    number: int
    status: str
    name: str
    attempt: str | None
    choices: dict[str, str]
    overrides: list[str]
    exit_code: int
    role: str = ""
    run_id: RunId = ""
    metrics: dict[str, float] = field(default_factory=dict)
    error: str = ""
    error_type: str = ""
    added: dict[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    _of_finished: ClassVar[Sequence[str]] = ("metrics",)  # that the file of a finished job has

    @property
    def is_finished(self) -> bool:
        """Whether the job ended well, with results."""
        return self.status == "FINISHED"

    @property
    def told(self) -> str:
        """The error of a failed job, or that there is none on its record."""
        return self.error or "no error was recorded"

    def take(self, entries: Mapping[str, Any]) -> None:
        """Sets the fields of these names, and keeps the other entries in `added`."""
        own = _fields(type(self))
        for name, value in entries.items():
            if name in own:
                setattr(self, name, value)
            else:
                self.added[name] = value

    def require(self, *names: str) -> None:
        """DataError if a field is empty."""
        for name in names:
            if not getattr(self, name):
                raise DataError(f"{self.folder / RECORD_FILE}: {name} is missing")

    def write(self) -> None:
        """Writes the file into the job's folder, without secrets."""
        content = {name: getattr(self, name) for name, of in _fields(type(self)).items() if self._is_written(of)}
        write_json(self.folder / RECORD_FILE, {**content, **self.added})

    def _is_written(self, of: Field[Any]) -> bool:
        default = of.default if of.default_factory is MISSING else of.default_factory()
        of_finished = self.is_finished and of.name in self._of_finished
        return _is_known_first(of) or of_finished or getattr(self, of.name) != default

    @classmethod
    def read(cls, file: Path) -> Self:
        """Reads a `job.json`, which may be a colleague's; DataError if no job of this kind wrote it."""
        try:
            found = read_json_object(file)
        except ValueError as error:
            raise DataError(f"{file}: {error}") from None
        except NotPlain as error:
            raise DataError(str(error)) from None
        except OSError as error:
            raise DataError(f"{file}: cannot be read ({error.strerror})") from None
        cls._check_role(file, found.get("role"))
        finished = found.get("status") == "FINISHED"
        own, kinds = _fields(cls), _types(cls)
        given = {name: _checked(f"{file}: {name}", found.pop(name), kinds[name]) for name in own if name in found}
        for name, of in own.items():
            if name in given:
                continue
            if _is_known_first(of) or (finished and name in cls._of_finished):
                raise DataError(f"{file}: {name} is missing")
        return cls(**given, added=found, folder=file.parent)

    @classmethod
    def _check_role(cls, file: Path, role: Any) -> None:
        """DataError for the record of another kind of job."""


@dataclass(kw_only=True)
class JobRecord(Record):
    """The record of a job that measures a system.

    sample_target, cluster, estimate, zones, foresight, report, names: the settings of the same names. written_in,
    directory: the job's folder, and the directory that it was started in. store, ledgers, tracking_uri: the places
    that it read and wrote. tracking_configured: whether its config names the MLflow. snapshot: the file of a window
    of traces. dataset: the arguments of `track.Run.dataset`. outside: the groups, `retriever` or `llm`, whose work
    another system did. condition: to which the retriever changes the evidence. settings: the meaning of the IR
    scores. measured_by: see `ragauge.contract.comparable`. entries: the store entries with its ranking and
    contexts, by stage; entries_used: all that it used, of a job that waits. deferred: it waits for its verdicts.
    judged_later: it would. needs: the sums of a dry run. rankings: metrics of rankings with their full names.
    lacking, foreign: topics without one of their parts, and texts that are no document's. ir_score_at_n,
    ir_score_floor_at_n: charts over budgets. system: the name among the jobs of a sweep; not in the file.
    """

    experiment: str
    sweep_id: str | None
    n_tokens: int
    seed: int
    bootstrap: int
    written_in: Place
    directory: Place = "."
    sample_target: str = ""
    cluster: str | None = None
    estimate: dict[str, Any] = field(default_factory=dict)
    zones: dict[str, Any] = field(default_factory=dict)
    foresight: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    store: Place = ""
    ledgers: dict[str, Place] = field(default_factory=dict)
    tracking_uri: Place = ""
    tracking_configured: bool = False
    snapshot: Place = ""
    experiment_id: str = ""
    dataset: dict[str, Any] = field(default_factory=dict)
    dataset_digest: str = ""
    answer_measures: list[dict[str, Any]] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    condition: float | str | None = None
    slice_weights: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    measured_by: Any = None
    entries: dict[str, Digest] = field(default_factory=dict)
    entries_used: list[str] = field(default_factory=list)
    stages_made: list[str] | None = None
    deferred: bool | None = None
    judged_later: bool = False
    needs: dict[str, Any] = field(default_factory=dict)
    rankings: dict[str, str] = field(default_factory=dict)
    lacking: dict[str, list[str]] = field(default_factory=dict)
    foreign: list[str] = field(default_factory=list)
    ir_score_at_n: dict[int, float] = field(default_factory=dict)
    ir_score_floor_at_n: dict[int, float] = field(default_factory=dict)
    system: str = ""
    _of_finished = ("metrics", "dataset_digest")

    @classmethod
    def _check_role(cls, file: Path, role: Any) -> None:
        if role == "training":
            raise DataError(f"{file} is of a training, which has no outcomes: give the folder of jobs")


@cache
def _fields(cls: type[Record]) -> dict[str, Field[Any]]:
    """The fields that stand in the file."""
    return {of.name: of for of in fields(cls) if of.name not in ("added", "folder", "system")}


def _is_known_first(of: Field[Any]) -> bool:
    """Whether the field has no default, since it is known before a job begins."""
    return of.default is MISSING and of.default_factory is MISSING


@cache
def _types(cls: type[Record]) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _checked(where: str, value: Any, kind: Any) -> Any:
    """The value of a field; DataError if it is not of its kind."""
    allowed, fits = _ALLOWED[kind]
    if not fits(value):
        text = repr(value)
        shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
        raise DataError(f"{where}={shown}: allowed is {allowed}")
    return {int(n): score for n, score in value.items()} if kind == dict[int, float] else value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, (bool, float)) or _is_whole(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not _SURROGATE.search(value)


def _is_place(value: Any) -> bool:
    return _is_text(value) and "\0" not in value


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and bool(_DIGEST.fullmatch(value))


def _maps(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(fits, value.values()))


def _lists(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _is_curve(value: Any) -> bool:
    return _maps(_is_number)(value) and all(_BUDGET.fullmatch(n) for n in value)


_LONGEST_SHOWN = 60  # characters of a value in a message
_LARGEST = 2**53
_SURROGATE = re.compile("[\ud800-\udfff]")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_BUDGET = re.compile(r"[0-9]{1,15}")
# What a field of a type may hold, in words, and whether a value is that.
_ALLOWED: Mapping[Any, tuple[str, Callable[[Any], bool]]] = {
    str: ("a text", _is_text),
    str | None: ("a text or null", lambda value: value is None or _is_text(value)),
    float | str | None: ("a number, a text or null", lambda value: _is_number(value) or _is_text(value)),
    Place: ("a path or an address", _is_place),
    RunId: ("the id of an MLflow run", lambda value: _is_text(value) and value.isalnum()),
    int: ("a whole number", _is_whole),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    bool | None: ("true, false or null", lambda value: value is None or isinstance(value, bool)),
    dict[str, str]: ("an object of texts", _maps(_is_text)),
    dict[str, Place]: ("an object of paths and addresses", _maps(_is_place)),
    dict[str, Digest]: ("an object of digests of store entries", _maps(_is_digest)),
    dict[str, float]: ("an object of numbers", _maps(_is_number)),
    dict[int, float]: ("an object of numbers by budget", _is_curve),
    dict[str, list[str]]: ("an object of lists of texts", _maps(_lists(_is_text))),
    dict[str, Any]: ("an object", lambda value: isinstance(value, dict)),
    list[str]: ("a list of texts", _lists(_is_text)),
    list[str] | None: ("a list of texts or null", lambda value: value is None or _lists(_is_text)(value)),
    Any: ("anything", lambda value: True),
    list[dict[str, Any]]: ("a list of objects", _lists(lambda value: isinstance(value, dict))),
}
