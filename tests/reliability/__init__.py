"""Kills, damage, faults, hostile files and fuzzing: short in the tests, at full length by ``make reliability``."""
