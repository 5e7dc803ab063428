"""What was tried and how it ended."""

import signal
import threading

COLUMNS = ["tried", "right error", "success", "panic", "hang", "over budget", "silent change"]
BAD = COLUMNS[3:]


class Table:
    """One row per campaign."""

    def __init__(self):
        self.rows, self.found, self.lock = {}, [], threading.Lock()

    def add(self, campaign, outcome, what=""):
        with self.lock:
            row = self.rows.setdefault(campaign, dict.fromkeys(COLUMNS, 0))
            row["tried"] += 1
            row[outcome] += 1
            if outcome in BAD:
                self.found.append(f"{campaign}: {outcome}: {what}")

    def show(self):
        """Prints it; whether nothing bad was found."""
        width = max(map(len, self.rows), default=8)
        total = {c: sum(r[c] for r in self.rows.values()) for c in COLUMNS}
        print(f"| {'campaign':<{width}} | " + " | ".join(COLUMNS) + " |")
        print("|---" * (len(COLUMNS) + 1) + "|")
        for name, row in [*self.rows.items(), ("all", total)]:
            cells = " | ".join(f"{row[c]:>{len(c)}}" for c in COLUMNS)
            print(f"| {name:<{width}} | {cells} |")
        for line in self.found[:40]:
            print(line)
        return not self.found


def outcome_of(done):
    """What a finished process represents: an error must state something."""
    output = done.stderr.decode(errors="replace")
    if "memory allocation of" in output or done.returncode == -signal.SIGKILL:
        return "over budget"
    if "panicked at" in output or done.returncode == 101 or done.returncode < 0:
        return "panic"
    if done.returncode == 0:
        return "success"
    return "right error" if output.strip() or (done.stdout or b"").strip() else "panic"
