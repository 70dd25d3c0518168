"""Runs that last: a study in a file, its execution anywhere, and how people and programs without Python use it."""

from bounce.study.command import Command
from bounce.study.status import Status
from bounce.study.study import Study

__all__ = ["Command", "Status", "Study"]
