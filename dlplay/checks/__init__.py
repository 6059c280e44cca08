"""The exercises' instant checks: right or wrong at once, why, and a hint that grows."""

from dlplay.checks.exercise import Exercise, Result, Wrong, check, exercises

__all__ = ["Exercise", "Result", "Wrong", "check", "exercises"]
