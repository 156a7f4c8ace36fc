"""Commands that the guides show: each is one that its program reads, and every configuration composes."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from options import option_files
from processes import ROOT
from ragauge.commands import known
from ragauge.contract.errors import ConfigError
from ragauge.contract.groups import GROUPS
from ragauge.experiment.setup import config

GUIDES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
STARTS = re.compile(r"(?:python run\.py|ragauge) (.*)$")
# What takes a package, folder or file of the reader's own, or no overrides.
OWN = ("--config-dir", "retriever.options.team", "team_pipeline", "experiment=team", "rerun=")
OTHERS = (
    *("ui", "compare", "gate", "report", "plan", "labels", "pool", "sample", "export", "store", "ledger", "batches"),
    "otel",
    "trec_rag",
    "dataset",
    "check",
    "help",
)


def shown(guide: Path) -> Iterator[list[str]]:
    """Arguments of the commands in a guide's blocks of code; those with a gap (<id>, ...) left out."""
    text = guide.read_text(encoding="utf-8").replace("\\\n", " ")
    for block in re.findall(r"^```bash\n(.*?)^```|((?:^    [^\n]*\n)+)", text, flags=re.M | re.S):
        for line in "".join(block).splitlines():
            found = STARTS.match(line.strip())
            command = re.sub(r"\s# .*$", "", found[1]) if found else ""
            if command and not re.search(r"[<…]|\.\.\.|\[--", command) and not any(o in command for o in OWN):
                yield shlex.split(command)


def jobs(arguments: list[str]) -> list[list[str]]:
    """The overrides of a command's jobs: of a sweep those that hold a value which no earlier job held."""
    overrides = [argument for argument in arguments if argument != "-m"]
    if "-m" not in arguments:
        return [overrides]
    parsed = OverridesParser.create().parse_overrides(overrides=overrides)
    [batch] = BasicSweeper.split_arguments(parsed, None)
    seen: set[str] = set()
    new = []
    for job in batch:
        if not seen.issuperset(job):
            new.append(list(job))
            seen.update(job)
    return new


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
        elif arguments[0] == "foresee":
            with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
                compose("foresee", overrides=arguments[1:])
        elif arguments[0] in ("synthesize", "annotate"):
            of = {"synthesize": "synthesis.synthesizing", "annotate": "annotate.annotating"}[arguments[0]]
            register = import_module(f"ragauge.plugins.{of}").register
            import_module("ragauge.plugins.synthesis.command").composed(arguments[0], arguments[1:], register)
        else:
            with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
                for job in jobs(arguments[1:] if arguments[0] == "stages" else arguments):
                    compose("config", overrides=job)
    except (ConfigError, HydraException) as error:
        return str(error)
    return ""


def examples(guide: Path) -> list[str]:
    """The Python that a guide shows."""
    return re.findall(r"^```python\n(.*?)^```", guide.read_text(encoding="utf-8"), flags=re.M | re.S)


class _ParsedError(Exception):
    pass


def unread(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What is wrong with a command, as far as its program sees it before it reads a file; "" where nothing is."""

    def alone(parse: Callable[..., object]) -> Callable[..., None]:
        def parsed(*given: object, **named: object) -> None:
            parse(*given, **named)
            raise _ParsedError

        return parsed

    composed = ("train", "synthesize", "annotate", "foresee", "stages", "help")
    if arguments[0] in known.names() and arguments[0] not in composed:
        with monkeypatch.context() as patch:
            for name in ("parse_args", "parse_intermixed_args"):
                patch.setattr(argparse.ArgumentParser, name, alone(getattr(argparse.ArgumentParser, name)))
            with pytest.raises(_ParsedError):
                known.command(arguments[0])(arguments[1:])
        return ""
    options = {(file.parent.name, file.stem) for file in option_files()}
    words = [a for a in arguments if a != "-m"][arguments[0] in known.names() :]
    for override in OverridesParser.create().parse_overrides(words):
        group = override.key_or_group
        texts = [override.value()] if not override.is_sweep_override() else list(override.sweep_string_iterator())
        named = [one for text in texts for one in (text if isinstance(text, list) else [text])]
        for one in named:
            if group in GROUPS and (group, str(one)) not in options:
                return f"{group}={one}: there is no such option"
    return ""


def test_every_page_has_an_example() -> None:
    without = [guide.stem for guide in GUIDES if not [*shown(guide), *examples(guide)]]
    assert not without, "a command or Python that this file, or another of this folder, checks"


def test_every_command_is_one_that_its_program_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    own = ("my_team", "team_", "squad_like", "trainer=")
    wrong = {
        f"{guide.stem}: {shlex.join(arguments)}": problem
        for guide in GUIDES
        for arguments in shown(guide)
        if not any(name in " ".join(arguments) for name in own) and (problem := unread(arguments, monkeypatch))
    }
    assert not wrong


def test_every_example_in_python_is_python() -> None:
    for guide in GUIDES:
        for example in examples(guide):
            ast.parse(example)


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_every_value_of_every_command_in_a_guide_composes(guide: Path) -> None:
    for arguments in shown(guide):
        if arguments[0] not in OTHERS and "sheet=" not in " ".join(arguments):
            few = [a if not a.startswith("n_tokens=range") else "n_tokens=100" for a in arguments]
            assert not problem(few), shlex.join(arguments)


def test_the_guides_show_commands() -> None:
    assert sum(len(list(shown(guide))) for guide in GUIDES) > 80
