"""The chain from rows to the hash of records.csv: read, guard, redact, form
the CSV, SHA-256; without deflate and staging.

verify_audit_export() is that chain and nothing else, once the archive's bytes
are gone: it makes records.csv again from the live rows and compares.  So the
CPU of the session that calls it is what the chain costs.
"""

import archive
import report
import server

# The first length of the hostile texts; the second is twice as long.
HOSTILE_LENGTH = 105_000
HOSTILE_TEXTS = 400


class Chain:
    """Runs the chain over one window in a session of its own."""

    def __init__(self, target, window):
        export_id = target.export(window)
        target.forget_archives()
        target.query("SELECT evidence.revoke_audit_export("
                     f"'{export_id}', 'benchmark')")
        self.session = server.Session(target)
        self.sql = ("SELECT bool_and(ok), count(*)"
                    f" FROM evidence.verify_audit_export('{export_id}')")

    def cpu(self):
        """CPU seconds of one run."""
        before = self.session.cpu()
        answer = self.session.query(self.sql)
        if not answer.startswith("t|"):
            raise server.Failed(f"verify_audit_export: {answer}")
        return self.session.cpu() - before


def chain(bench):
    """Against plain COPY TO STDOUT of the same rows in the same order: CPU
    of the server alone, psql's is left out.
    """
    target = bench.server()
    result = []
    for rows in bench.sizes(1_000_000):
        window = bench.window("data", rows)
        ours = Chain(target, window)
        copying = server.Session(target)

        def copy():
            before = copying.cpu()
            copying.query(archive.copy_statement(window),
                          end=" \\g /dev/null")
            return copying.cpu() - before

        rivals, products = report.in_turns(bench.runs(5), copy, ours.cpu,
                                           bench.note)
        result.append(report.compared(
            "read, guard, redact, CSV, SHA-256: server CPU",
            report.rows_text(rows), "COPY TO STDOUT", products, rivals,
            report.seconds, 0.75))
    return result


def rules(bench):
    """Guard and redaction against the same chain without them, and the same
    for a whole archive, where deflate and staging are part of both.

    The other server runs a build in which plain_cell.c stands for cell.c:
    texts go into the CSV as they are.
    """
    rows = 60_000 if bench.quick else 300_000
    kind, what = (("events", "real events") if bench.events
                  else ("data", "made-up rows"))
    servers = [bench.server(name) for name in ("plain", "bench")]
    windows = [bench.window(kind, rows, name) for name in ("plain", "bench")]
    chains = [Chain(*pair) for pair in zip(servers, windows)]
    archives = [lambda pair=pair: archive.with_cpu(
        pair[0], lambda: archive.run_product(*pair))[1]
                for pair in zip(servers, windows)]
    result = []
    for name, (without, with_rules) in (
            ("server CPU without deflate and staging",
             [chain.cpu for chain in chains]),
            ("CPU of an archive", archives)):
        bench.note(name)
        rivals, ours = report.in_turns(bench.runs(9), without, with_rules,
                                       bench.note)
        result.append(report.compared(
            f"guard and redaction: {name}", f"{rows:,} {what}",
            "the same without both", ours, rivals, report.seconds, 1.20))
    return result


def linear(bench):
    """CPU per character of hostile texts that are twice as long."""
    target = bench.server()
    windows = []
    for length in (HOSTILE_LENGTH, 2 * HOSTILE_LENGTH):
        window = bench.window("hostile", HOSTILE_TEXTS, length=length)
        windows.append(Chain(target, window))
    short, long = report.in_turns(bench.runs(9), windows[0].cpu,
                                  windows[1].cpu, bench.note)
    return [report.compared(
        "guard and redaction of hostile texts: CPU per character",
        f"{HOSTILE_TEXTS} of {2 * HOSTILE_LENGTH:,} characters",
        f"{HOSTILE_LENGTH:,} characters",
        [cpu / 2 for cpu in long], short, report.seconds, 1.10)]
