"""The `patra` command as people and scripts meet it: a process, its words and its exit code."""
