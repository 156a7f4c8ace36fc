"""Commands that the guides show: every configuration that one of them would run composes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from processes import ROOT
from ragauge.contract.errors import ConfigError
from ragauge.experiment.setup import config

pytestmark = pytest.mark.slow
GUIDES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
STARTS = re.compile(r"(?:python run\.py|ragauge) (.*)$")
# What takes a package, folder or file of the reader's own, or no overrides.
OWN = ("--config-dir", "retriever.options.team", "team_pipeline", "experiment=team", "rerun=")
OTHERS = ("ui", "compare", "gate", "report", "plan", "pool", "export", "store", "ledger", "help")


def shown(guide: Path) -> Iterator[list[str]]:
    """Arguments of the commands in a guide's blocks of code; those with a gap (<id>, ...) left out."""
    text = guide.read_text(encoding="utf-8").replace("\\\n", " ")
    for block in re.findall(r"^```bash\n(.*?)^```|((?:^    .*\n)+)", text, flags=re.M | re.S):
        for line in "".join(block).splitlines():
            found = STARTS.match(line.strip())
            command = re.sub(r"\s# .*$", "", found[1]) if found else ""
            if command and not re.search(r"[<…]|\.\.\.", command) and not any(o in command for o in OWN):
                yield shlex.split(command)


def jobs(arguments: list[str]) -> list[list[str]]:
    """The overrides of every job of a command."""
    overrides = [argument for argument in arguments if argument != "-m"]
    if "-m" not in arguments:
        return [overrides]
    parsed = OverridesParser.create().parse_overrides(overrides=overrides)
    [batch] = BasicSweeper.split_arguments(parsed, None)
    return [list(job) for job in batch]


def problem(arguments: list[str]) -> str:
    """What is wrong with a command; "" where all of its jobs compose."""
    config.register()
    try:
        if arguments[0] == "train":
            # `validation.` and `elsewhere.` change the dataset's keys for other topics.
            own = [a for a in arguments[1:] if not a.startswith(("validation.", "elsewhere."))]
            import_module("ragauge.plugins.training.config").register()
            with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
                compose("train", overrides=own)
        elif arguments[0] == "synthesize":
            import_module("ragauge.plugins.synthesis.command")._composed(arguments[1:])
        else:
            with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
                for job in jobs(arguments[1:] if arguments[0] == "stages" else arguments):
                    compose("config", overrides=job)
    except (ConfigError, HydraException) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_every_job_of_every_command_in_a_guide_composes(guide: Path) -> None:
    for arguments in shown(guide):
        if arguments[0] not in OTHERS and "sheet=" not in " ".join(arguments):
            few = [a if not a.startswith("n_tokens=range") else "n_tokens=100" for a in arguments]
            assert not problem(few), shlex.join(arguments)


def test_the_guides_show_commands() -> None:
    assert sum(len(list(shown(guide))) for guide in GUIDES) > 80
