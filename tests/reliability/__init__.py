"""Kills, damage, faults, concurrent writers, hostile files, fuzzing: short in tests, full by ``make reliability``."""
