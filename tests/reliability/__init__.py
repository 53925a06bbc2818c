"""Kills, damage, faults, writers at once, hostile files, fuzzing: short in the tests, whole by ``make reliability``."""
