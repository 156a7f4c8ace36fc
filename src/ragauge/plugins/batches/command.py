"""The command `ragauge batches`: lists the open batches of a ledger, and forgets one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ragauge.commands.errors import told
from ragauge.contract.errors import ConfigError
from ragauge.contract.visible import table, time_text

ABOUT = "lists and forgets batches that a provider has not answered yet"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ragauge batches", description="Batches of submit=batch whose replies are not in the ledger."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    forget = "Forgets a batch: a run that needs its requests submits, and pays, them once more."
    for name, text in (("ls", "Lists the open batches."), ("forget", forget)):
        added = commands.add_parser(name, help=text, description=text)
        added.add_argument("--ledger", metavar="PATH|URL", help="the ledger; else as in a run of ragauge")
    added.add_argument("batch", metavar="ID", help="the provider's id of the batch, or our name of it")
    added.add_argument("--yes", action="store_true", help="forget it; else it is listed alone")
    return parser


@told
def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    given = _parser().parse_args(arguments)
    from ragauge.llms.ledger import existing_place, open_ledger
    from ragauge.plugins.batches import table as batches

    ledger = open_ledger(existing_place(given.ledger))
    found = batches.open_batches(ledger)
    if given.command == "forget":
        found = [batch for batch in found if given.batch in (batch.remote, batch.name)]
        if not found:
            raise ConfigError(f"forget {given.batch}: no open batch has this id; `ragauge batches ls` lists them")
    rows = []
    for batch in found:
        requests = batches.requests_of(ledger, batch.name).values()
        most = f"{sum(one.usd for one in requests):.4f}"
        sent = time_text(batch.sent_at) if batch.sent_at else "not sent"
        rows.append((batch.remote or batch.name, batch.place, sent, f"{len(requests)}", most))
    print(table([("batch", "address", "sent", "requests", "USD at most"), *rows], right=(3, 4)))
    if given.command == "forget" and given.yes:
        for batch in found:
            batches.close(ledger, batch.name)
        print(f"{len(found)} batch(es) forgotten")
    elif given.command == "forget":
        print("\nnothing is forgotten: --yes forgets it")
    return 0
