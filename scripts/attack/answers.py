"""How commands have to end."""

import subprocess

from table import outcome_of
from tool import PATIENCE


def passes(tool, *arguments, patience=PATIENCE):
    """How it ended, and that as text; None where it did not within its time."""
    try:
        done = tool.mithras(*arguments, patience=patience)
    except subprocess.TimeoutExpired:
        return None, "hang"
    return done, f"{outcome_of(done)}: {done.stderr[-200:]!r}"


def within_bounds(tool, commands):
    """Each ends within its time and memory, by success or an error that states why."""
    for words in commands:
        done, output = passes(tool, *words)
        if done is None or outcome_of(done) not in ("success", "right error"):
            return False, f"{words[:3]}: {output}"
    return True, ""


def refused(tool, commands):
    """Each is an error that states why, within its time and memory."""
    for words in commands:
        done, output = passes(tool, *words)
        if done is None or outcome_of(done) != "right error":
            return False, f"{words[:4]}: {output}"
    return True, ""
