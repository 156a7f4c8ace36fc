"""The command `ragauge annotate`: evidence for topics without any, from pooled passages graded by an evaluator."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ragauge.commands.conf import take_config_options
from ragauge.commands.errors import told
from ragauge.contract.errors import ConfigError
from ragauge.contract.visible import visible

ABOUT = "makes evidence for topics without any: pooled passages, graded and quoted by a chat model"
_CONFIG = "annotate"  # conf/annotate.yaml, beside this file

_HELP = """\
The first passages of several retrievers are pooled for every topic without evidence. The evaluator grades each from
0 to 3 and quotes the sentences that answer; quotes that stand in their passage become evidence. Keys are those of a
job (dataset=, evaluator=, embedder=, seed=, dry_run=, …) and:

"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge annotate",
        description=_HELP + _own_keys(),
        epilog="example: ragauge annotate dataset=jsonl dataset.docs=corpus.jsonl dataset.topics=questions.jsonl "
        "evaluator=openai pool=[bm25,sim,mmr] out=annotated.jsonl",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as depth=20")
    take_config_options(parser)
    return parser


def _own_keys() -> str:
    """The keys of conf/annotate.yaml with their comments."""
    text = (Path(__file__).parent / "conf" / f"{_CONFIG}.yaml").read_text(encoding="utf-8")
    return text[text.index("# Retrievers whose first") :]


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    from omegaconf.errors import OmegaConfBaseException

    from ragauge.commands.conf import explain
    from ragauge.plugins.annotate import annotating  # after the arguments: it imports for seconds
    from ragauge.plugins.synthesis.command import composed

    if fixed := [one for one in given.overrides if one.startswith("retriever=")]:
        raise ConfigError(f"{fixed[0]}: several retrievers are pooled; give them as pool=[bm25,sim]")
    cfg, choices = composed(_CONFIG, given.overrides, annotating.register)
    try:
        cfgs = {
            name: composed(_CONFIG, [*given.overrides, f"retriever={name}"], annotating.register)[0]
            for name in annotating.pools_of(cfg)
        }
        annotating.execute(cfgs, choices, lambda line: print(visible(line), flush=True))
    except OmegaConfBaseException as error:  # a value that has to be given, or an unset variable
        raise ConfigError(explain(error, _CONFIG)) from None
    return 0
