"""The request for a job, written to its record, MLflow run and folder before any work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragauge import track
from ragauge.contract.groups import AROUND_RETRIEVER, GROUPS
from ragauge.contract.provenance import PACKAGES_FILE, packages_text
from ragauge.contract.record import JobRecord
from ragauge.contract.redact import redact, redact_tree
from ragauge.experiment.described import job_note
from ragauge.experiment.folder import JobFolder
from ragauge.experiment.setup.packages import config_packages
from ragauge.store import default_ledger

if TYPE_CHECKING:
    from omegaconf import DictConfig


def first_record(cfg: DictConfig, folder: JobFolder) -> JobRecord:
    """The `job.json` of a job before it begins."""
    record = JobRecord(
        status="FAILED",
        name=run_name(cfg, folder.choices),
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
        estimate={
            "features": list(cfg.estimate.features),
            "spline": bool(cfg.estimate.spline),
            "calibrate": bool(cfg.estimate.calibrate),
        },
        zones={"alpha": float(cfg.zones.alpha), "confidence": float(cfg.zones.confidence)},
        foresight={"target": cfg.foresight.target},
        report={"family": cfg.report.family, "primary": list(cfg.report.primary)},
        experiment=cfg.tracking.experiment or str(cfg.dataset.name),
        written_in=str(folder.path.resolve()),
        directory=str(Path.cwd()),
        exit_code=0,
        folder=folder.path,
    )
    record.take({} if folder.origin is None else folder.origin.record)
    return record


def used_places(cfg: DictConfig) -> dict[str, Any]:
    """The absolute paths that a job reads and writes, by which pooling finds it again."""
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


def run_name(cfg: DictConfig, choices: Mapping[str, str]) -> str:
    """The name of a run in lists: retriever and the parts chosen around it, budget and model."""
    model = _model(cfg, choices)
    around = [choices.get(group) for group in AROUND_RETRIEVER]
    system = [choices.get("retriever", "?"), *(part for part in around if part not in (None, "none", "rank"))]
    return f"{' + '.join(map(str, system))} · N={cfg.n_tokens} · {model}"


def _model(cfg: DictConfig, choices: Mapping[str, str]) -> str:
    """Name of the answering model: the chat model, the recorded system, or the llm's option."""
    from omegaconf import OmegaConf

    model = OmegaConf.select(cfg, "llm.chat.model") or OmegaConf.select(cfg, "llm.system")
    return str(model or choices.get("llm", "?"))


def logged_params(cfg: DictConfig) -> dict[str, Any]:
    """The parameters of the job's MLflow run."""
    from omegaconf import OmegaConf

    plain: Any = OmegaConf.to_container(cfg, resolve=True)
    return track.flatten(_without_copies(plain, OmegaConf.to_container(cfg)))


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


def first_tags(cfg: DictConfig, folder: JobFolder) -> dict[str, Any]:
    """The tags of a job's MLflow run before any work."""
    packages = ", ".join(dict.fromkeys(p.distribution for p in config_packages() if not p.own))
    return {
        "role": "job",
        **{group: folder.choices.get(group, "?") for group in GROUPS},
        "n_tokens": cfg.n_tokens,
        **folder.tags,
        **({"config_packages": packages} if packages else {}),
        **({} if folder.origin is None else folder.origin.tags),
    }


def description(cfg: DictConfig, folder: JobFolder) -> str:
    """The description of the job's MLflow run."""
    about = (str(cfg.dataset.name), int(cfg.n_tokens), _model(cfg, folder.choices), cfg.tracking.note)
    return job_note(folder.choices, *about)


def write_config(cfg: DictConfig, folder: JobFolder, out: Path) -> None:
    """Writes the config, overrides and installed packages into a folder, for reruns."""
    from omegaconf import OmegaConf

    # Unresolved, so that what stands in an environment variable stays there.
    config = OmegaConf.to_container(cfg, resolve=False)
    for name, content in (("config", config), ("overrides", list(folder.overrides))):
        text = OmegaConf.to_yaml(OmegaConf.create(redact_tree(content)))
        (out / f"{name}.yaml").write_text(text, encoding="utf-8")
    (out / PACKAGES_FILE).write_text(packages_text(), encoding="utf-8")
