"""Running: how evaluations happen. Functions, commands, worker processes and executors."""
