"""Tables of rules, by the class of a node or by a name: the modules of the rules fill them when they are imported.

So the driver that looks a rule up imports none of them, and a new rule is one entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Key = TypeVar("Key")
Rule = TypeVar("Rule", bound=Callable[..., Any])
Own = TypeVar("Own", bound=Callable[..., Any])


class Rules(dict[Key, Rule]):
    def of(self, *keys: Key) -> Callable[[Own], Own]:
        """Registers the function below as the rule of these keys."""

        def register(rule: Own) -> Own:
            twice = [key for key in keys if key in self]
            assert not twice, f"two rules for {twice}"
            self.update(dict.fromkeys(keys, rule))  # type: ignore[arg-type]  # what a rule takes is the table's to say
            return rule

        return register
