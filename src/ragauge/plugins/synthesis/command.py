"""The command `ragauge synthesize`: questions from a dataset's documents, filtered, with their evidence."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ragauge.commands.conf import conf_folder, quoted, search_path, take_config_options
from ragauge.commands.errors import told
from ragauge.contract.errors import ConfigError
from ragauge.contract.visible import visible

ABOUT = "writes questions with answers and evidence from documents, and filters them"
_CONFIG = "synthesize"  # conf/synthesize.yaml, beside this file

_HELP = """\
Questions are written from documents by a chat model, or by rules (writer=cloze), and filtered: the evidence
stands verbatim in its document, the answer follows from it, the model does not know it without documents, and
no question comes twice. Keys are those of a job (dataset=, llm=, retriever=, seed=, dry_run=, …) and:

"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge synthesize",
        description=_HELP + _own_keys(),
        epilog="example: ragauge synthesize dataset=folder dataset.path=docs/ llm=ollama n_questions=200 "
        "out=questions.jsonl",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as n_questions=200")
    take_config_options(parser)
    return parser


def _own_keys() -> str:
    """The keys of conf/synthesize.yaml with their comments."""
    text = (Path(__file__).parent / "conf" / f"{_CONFIG}.yaml").read_text(encoding="utf-8")
    return text[text.index("# Questions that are to pass") :]


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    from omegaconf.errors import OmegaConfBaseException

    from ragauge.commands.conf import explain
    from ragauge.plugins.synthesis import synthesizing  # after the arguments: it imports for seconds

    cfg, choices = composed(_CONFIG, given.overrides, synthesizing.register)
    try:
        synthesizing.execute(cfg, choices, lambda line: print(visible(line), flush=True))
    except OmegaConfBaseException as error:  # a value that has to be given, or an unset variable
        raise ConfigError(explain(error, _CONFIG)) from None
    return 0


def composed(name: str, overrides: Sequence[str], register: Callable[[], None]) -> tuple[Any, dict[str, str]]:
    """The config `name`, and the chosen option of every group; ConfigError for arguments that cannot be composed.

    register: makes known to Hydra the schema that the config starts from, instead of a job's.
    """
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import open_dict
    from omegaconf.errors import OmegaConfBaseException

    from ragauge.commands.conf import explain
    from ragauge.experiment.setup import config

    register()
    try:
        with initialize_config_dir(str(conf_folder().resolve()), version_base="1.3"):
            cfg = compose(name, overrides=[*quoted(overrides), *search_path()], return_hydra_config=True)
        config.refuse_keys(cfg)
        chosen = {str(group): str(option) for group, option in cfg.hydra.runtime.choices.items()}
        with open_dict(cfg):
            del cfg["hydra"]
        return cfg, chosen
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(explain(error, name)) from None
    finally:
        config.register()  # the schema of a job again
