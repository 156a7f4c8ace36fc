"""The request for a job: its folder, its composed config, and what is written of both before any work."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge import track
from ragauge.contract.current_job import of_this_run
from ragauge.contract.errors import ConfigError, DataError, MissingError, ServerGoneError, UnreadableJudgeError
from ragauge.contract.groups import AROUND_RETRIEVER, GROUPS
from ragauge.contract.interruption import CODES
from ragauge.contract.job_files import attempt_of
from ragauge.contract.naming import given_names, given_value, short_forms
from ragauge.contract.output_files import write_json
from ragauge.contract.provenance import PACKAGES_FILE, packages_text
from ragauge.contract.record import RECORD_FILE, JobRecord, Record
from ragauge.contract.redact import redact, redact_tree
from ragauge.contract.settings import Settings
from ragauge.experiment.setup.config import settings_of
from ragauge.experiment.setup.packages import config_packages
from ragauge.llms.settings import address_of
from ragauge.store import default_ledger
from ragauge.track import views

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from ragauge.experiment.arguments import Origin

SWEEP_FILE = "multirun.yaml"  # Hydra writes it when a sweep starts
_PRODUCT = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"
_OF_BUDGET = re.compile(r"\$\{[^{}]*\bn_tokens\b")  # in a setting
# Overrides whose values stand in a job's name in any case, or in the name of its model.
_IN_NAMES = frozenset({"retriever", *AROUND_RETRIEVER, "llm", "llm.chat.model", "llm.system", "recorded.system"})
_OF_ESTIMATES = ("estimate", "zones", "foresight", "report")  # parts of the config that pooling reads in job.json


@dataclass(frozen=True)
class JobFolder:
    """A job's folder and its request, from Hydra, in plain values."""

    path: Path
    sweep: Path | None
    number: int
    choices: Mapping[str, str]
    overrides: tuple[str, ...]
    origin: Origin | None = None  # such as the job that it repeats

    @property
    def sweep_id(self) -> str | None:
        """The common id of a sweep's jobs, from its folder's date, time and path; None for a single job."""
        if self.sweep is None:
            return None
        place = hashlib.sha256(os.fsencode(self.sweep)).hexdigest()[:6]
        return f"{self.sweep.parent.name}_{self.sweep.name}_{place}"

    @property
    def attempt(self) -> str | None:
        """The job's attempt at its sweep; None for a single job."""
        return None if self.sweep is None else attempt_of(self.sweep)

    @property
    def tags(self) -> dict[str, Any]:
        """The tags that link the attempts at a job of a sweep; none for a single job."""
        return {} if self.sweep is None else {"sweep_id": self.sweep_id, "job": self.number}

    @property
    def ended_run(self) -> str | None:
        """The MLflow run id on the record of an uninterrupted attempt at the job."""
        try:
            record = Record.read(self.path / RECORD_FILE)
        except DataError:
            return None
        return None if record.exit_code in CODES else record.run_id or None

    @property
    def budgets(self) -> tuple[int, ...]:
        """The values of n_tokens of the sweep; () if it has none of its own, or its jobs are no product of values.

        A sweeper that chooses jobs, such as a race, answers for itself.
        """
        values, is_product = self._swept
        return tuple(sorted({int(n) for n in values.get("n_tokens", ()) if n.isdecimal()})) if is_product else ()

    @property
    def jobs(self) -> int | None:
        """The number of the sweep's jobs; None if it is not known."""
        values, is_product = self._swept
        return math.prod(map(len, values.values())) if is_product else None

    def varied(self) -> dict[str, str]:
        """The short forms of the values of this job that its sweep varied, n_tokens apart, by key."""
        own = {key.lstrip("+"): value for key, _, value in (text.partition("=") for text in self.overrides)}
        forms = {key: form for key, form in self._forms.items() if key != "n_tokens" and key in own}
        return {key: form.get(value := given_value(key, own[key]), value) for key, form in forms.items()}

    def widest(self, name: str) -> int:
        """The length of the longest name that a job of the sweep may have, where this one has that name."""
        values, _ = self._swept
        budgets = [f"N={n} " for n in values.get("n_tokens", ())]
        own = next((n for n in budgets if n in name), "")
        spare = max(map(len, budgets), default=0) - len(own) if own else 0
        forms = self._forms
        for key, form in self.varied().items():
            spare += max(map(len, forms[key].values())) - len(form)
        return len(name) + spare

    @property
    def _forms(self) -> dict[str, dict[str, str]]:
        """The short forms of the values that the sweep varied, by key."""
        values, _ = self._swept
        keys = [key for key, found in values.items() if key != "n_tokens" and len(found) > 1]
        return {key: short_forms(key, [given_value(key, value) for value in values[key]], keys) for key in keys}

    @property
    def _swept(self) -> tuple[Mapping[str, tuple[str, ...]], bool]:
        file = None if self.sweep is None else self.sweep / SWEEP_FILE
        try:
            return ({}, False) if file is None else _swept_in(file, file.stat().st_mtime_ns)
        except OSError:
            return {}, False


@lru_cache(maxsize=1)  # a third of a second, for every job of a sweep
def _swept_in(file: Path, written: int) -> tuple[Mapping[str, tuple[str, ...]], bool]:
    """The values of each override, from the file that Hydra writes when a sweep starts; whether jobs are their product.

    An override with values that are not known here, such as glob(*), is left out, and there is no product.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException
    from omegaconf import OmegaConf

    begun = OmegaConf.load(file)
    given: Any = OmegaConf.to_container(begun.hydra, resolve=False)
    texts = [f"{key}={value}" for key, value in (given["sweeper"].get("params") or {}).items()]
    found, whole = dict[str, tuple[str, ...]](), True
    for override in OverridesParser.create().parse_overrides([*texts, *given["overrides"]["task"]]):
        key = override.get_key_element().lstrip("+")
        found.pop(key, None)
        if override.is_sweep_override():
            try:
                found[key] = tuple(dict.fromkeys(override.sweep_string_iterator()))
            except (HydraException, ValueError):
                whole = False
    return found, whole and given["sweeper"]["_target_"] == _PRODUCT


@dataclass(frozen=True)
class AskedInVain:
    """Notes in a sweep's folder on what a job asked in vain, so that the others do not ask it.

    That is a judge whose replies cannot be read, or a server that is gone. A note of an earlier attempt at the sweep
    does not count.
    """

    folder: JobFolder
    settings: Settings

    def leave(self, error: UnreadableJudgeError | ServerGoneError) -> None:
        """Writes the note for the sweep's other jobs; nothing for a single job."""
        gone = isinstance(error, ServerGoneError)
        path = self._of_server(error.address) if gone else self._of_judge()
        if path is not None:
            write_json(path, {"job": self.folder.number, "error": str(error)})

    def refuse(self, *groups: str) -> None:
        """MissingError if a note of this attempt is about the judge, or about the server of one of the groups."""
        _refuse(self._of_judge(), "has the same judge")
        for group in groups:
            chat = getattr(self.settings, group).get("chat")
            if isinstance(chat, Mapping):
                _refuse(self._of_server(address_of(chat)), "asks the same server")

    def _of_judge(self) -> Path | None:
        return self._path("unreadable_judge", json.dumps(self.settings.judge, sort_keys=True))

    def _of_server(self, address: str) -> Path | None:
        return self._path("gone_server", address)

    def _path(self, kind: str, about: str) -> Path | None:
        name = hashlib.sha256(about.encode()).hexdigest()[:8]
        return self.folder.sweep and self.folder.sweep / f"{kind}_{name}.json"


def _refuse(path: Path | None, as_it: str) -> None:
    """MissingError if another job of this attempt left a note there."""
    try:
        if path is None or not of_this_run(path.stat().st_mtime):
            return
        note = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    raise MissingError(f"not run, and nothing was asked: job {note['job']}, which {as_it}, ended: {note['error']}")


@dataclass(frozen=True)
class Request:
    """A job as it was asked for: its folder, and its config with the interpolations that it was written with."""

    cfg: DictConfig
    folder: JobFolder

    @cached_property
    def settings(self) -> Settings:
        """The config with all interpolations resolved; the config may no longer change."""
        return settings_of(self.cfg)

    @cached_property
    def names(self) -> dict[str, str]:
        """Other names of systems; none where they are refused, as the settings say."""
        try:
            return given_names(self.cfg.names)
        except ConfigError:
            return {}

    @property
    def budgets(self) -> tuple[int, ...]:
        """The budgets of the job's sweep; () where another one is another system, or verdicts may not be needed."""
        from omegaconf import OmegaConf

        written = str(OmegaConf.to_container(self.cfg, resolve=False))
        apart = self.settings.judge.get("looks") is not None or _OF_BUDGET.search(written)
        return () if apart else self.folder.budgets

    @property
    def experiment(self) -> str:
        """The name of the job's MLflow experiment."""
        return self.cfg.tracking.experiment or str(self.cfg.dataset.name)

    def record(self) -> JobRecord:
        """The `job.json` of the job before it begins."""
        from omegaconf import OmegaConf

        cfg, folder = self.cfg, self.folder
        record = JobRecord(
            status="FAILED",
            name=self.name,
            number=folder.number,
            sweep_id=folder.sweep_id,
            attempt=folder.attempt,
            choices=dict(folder.choices),
            overrides=list(folder.overrides),
            n_tokens=int(cfg.n_tokens),
            seed=int(cfg.seed),
            bootstrap=int(cfg.bootstrap),
            sample_target=cfg.sample_target,
            cluster=cfg.cluster,
            experiment=self.experiment,
            written_in=str(folder.path.resolve()),
            directory=str(Path.cwd()),
            exit_code=0,
            folder=folder.path,
        )
        record.names = self.names
        record.take({key: OmegaConf.to_container(cfg[key], resolve=True) for key in _OF_ESTIMATES})
        record.take({} if folder.origin is None else folder.origin.record)
        return record

    def places(self) -> dict[str, Any]:
        """The absolute paths that a job reads and writes, by which pooling finds it again."""
        cfg = self.cfg
        store = Path(cfg.store).absolute()
        named = {part: cfg[part].get("ledger") for part in ("llm", "evaluator", "judge")}
        ledgers = {part: str(ledger or default_ledger(store)) for part, ledger in named.items()}
        return {
            "store": str(store),
            "ledgers": {
                part: redact(ledger if "://" in ledger else str(Path(ledger).absolute()))
                for part, ledger in ledgers.items()
            },
            "tracking_uri": redact(track.absolute_uri(track.tracking_uri(cfg.tracking.uri))),
            "tracking_configured": cfg.tracking.uri is not None,
        }

    @property
    def name(self) -> str:
        """The name of a run in lists: retriever and the parts around it, what the sweep varied, budget and model."""
        choices, varied = self.folder.choices, self.folder.varied()
        around = [choices.get(group) for group in AROUND_RETRIEVER]
        system = [choices.get("retriever", "?"), *(part for part in around if part not in (None, "none", "rank"))]
        others = [value for key, value in varied.items() if key not in _IN_NAMES]
        given = self.names.get(" · ".join(varied.values()))
        words = [given] if given is not None else [" + ".join(map(str, system)), *others]
        return " · ".join([*words, f"N={self.cfg.n_tokens}", self._model])

    @property
    def _model(self) -> str:
        """Name of the answering model: the chat model, the recorded system, or the llm's option."""
        from omegaconf import OmegaConf

        model = OmegaConf.select(self.cfg, "llm.chat.model") or OmegaConf.select(self.cfg, "llm.system")
        llm = self.folder.choices.get("llm", "?")
        file = OmegaConf.select(self.cfg, "llm.path") if llm == "llama_cpp" else None
        return str(model or (file and Path(file).stem) or llm)

    def params(self) -> dict[str, Any]:
        """The parameters of the job's MLflow run."""
        from omegaconf import OmegaConf

        plain: Any = OmegaConf.to_container(self.cfg, resolve=True)
        return track.flatten(_without_copies(plain, OmegaConf.to_container(self.cfg)))

    def tags(self) -> dict[str, Any]:
        """The tags of a job's MLflow run before any work."""
        folder = self.folder
        packages = ", ".join(dict.fromkeys(p.distribution for p in config_packages() if not p.own))
        return {
            "role": "job",
            **{group: folder.choices.get(group, "?") for group in GROUPS},
            "n_tokens": self.cfg.n_tokens,
            **folder.tags,
            **({"config_packages": packages} if packages else {}),
            **({} if folder.origin is None else folder.origin.tags),
        }

    def description(self) -> str:
        """The description of the job's MLflow run."""
        cfg = self.cfg
        return job_note(self.folder.choices, str(cfg.dataset.name), cfg.n_tokens, self._model, cfg.tracking.note)

    def where(self, record: JobRecord) -> str:
        """The last lines of a job: its MLflow run and folder, and of a single job how to open the run."""
        folder = self.folder
        if folder.sweep is not None:
            return f"MLflow run {record.run_id}; folder {folder.path}"
        page = views.run_page(record.experiment_id, record.run_id)
        uri = redact(track.tracking_uri(self.cfg.tracking.uri))
        return f"MLflow run {record.run_id}; folder {folder.path.resolve()}\n{views.where_text(uri, page)}"


def write_config(cfg: DictConfig, out: Path, overrides: Sequence[str] | None = None) -> None:
    """Makes the folder `out`, and writes the config, the overrides and the installed packages into it, for reruns."""
    from omegaconf import OmegaConf

    out.mkdir()
    # Unresolved, so that what stands in an environment variable stays there.
    written: dict[str, Any] = {"config": OmegaConf.to_container(cfg, resolve=False)}
    written |= {} if overrides is None else {"overrides": list(overrides)}
    for name, content in written.items():
        text = OmegaConf.to_yaml(OmegaConf.create(redact_tree(content)))
        (out / f"{name}.yaml").write_text(text, encoding="utf-8")
    (out / PACKAGES_FILE).write_text(packages_text(), encoding="utf-8")


def _without_copies(plain: Mapping[str, Any], written: Any) -> dict[str, Any]:
    """The config with interpolations in place of mappings that it repeats."""
    return {
        key: value
        if not isinstance(value, Mapping)
        else written[key]
        if isinstance(written[key], str)
        else _without_copies(value, written[key])
        for key, value in plain.items()
    }


def job_note(choices: Mapping[str, str], dataset: str, n_tokens: int, model: str, note: str | None) -> str:
    """The description of a job's run, after `tracking.note`: its content, and how to read it.

    choices: the chosen option of every config group. model: the LLM that answers.
    """
    chosen = {group: name for group, name in choices.items() if name not in ("none", "rank")}
    around = [f"{group} {chosen[group]}" for group in AROUND_RETRIEVER if group in chosen]
    system = f"retriever {choices.get('retriever', '?')}"
    system += f" with {', '.join(around)}" if around else ""
    chunks = f" over chunks by {chosen['chunker']}" if "chunker" in chosen else ""
    answers = f", answers of {model}" if "llm" in chosen else ", no answers"
    answers += " (word rules, no LLM)" if chosen.get("llm") == "extractive" else ""
    judged = f" judged by {chosen['judge']}" if "judge" in chosen else ""
    judged += " (word rules, no LLM)" if chosen.get("judge") == "lexical" else ""
    words = [
        *([note.rstrip()] if note else []),
        f"Measured: {system}{chunks}, on the questions of {dataset}, with a context of {n_tokens:,} tokens"
        f"{answers}{judged}.",
        "Read `ir_score` first (share of the needed evidence in the context), then `correct_share` and "
        "`hallucination_share` (shares of the questions, beside `judge_share_missing` without a verdict). "
        "`interval/…` has 95 % intervals, "
        "`per_question.json` under Artifacts has every question, `chart/ir_score_at_n` the score at other budgets.",
    ]
    return "\n\n".join(words)
