"""Calls all the way down: functions of Loop IR, judged by its verifier and interpreter, and native code."""
