"""The method by which Python calls a compiled function, as machine code.

`install` takes a class whose `__call__` is written in Python, and the slot in which its objects hold a list of native
entries (native_entry.py). The method tries them in turn and gives what the first one gives that fits. Where none does, or
arguments come by name, the Python that was there is called. It has no frame, makes no tuple and looks up no name, which
is most of what a call of a small function costs.

Relies on entries that raise without frames of ours in the traceback: nobody cleans it here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tapeless.backends.cpu import engine
from tapeless.backends.cpu.python_objects import ITEMS, LENGTH, address, member_at, method_at, usable
from tapeless.backends.llvm import host, optimize
from tapeless.runtime.native_entry import MISFIT

NAME = "tapeless_method"
_installed: dict[type, Callable[..., Any]] = {}  # what was written in Python
_lock = threading.Lock()


def install(cls: type, slot: str) -> None:
    """Later calls of objects of this class try what is in their slot first."""
    with _lock:
        if cls in _installed or not usable():
            return
        written = _installed[cls] = cls.__dict__["__call__"]
        text = _text(member_at(cls, slot), written)
        place = engine.load((optimize.to_object(optimize.parse(text), 0),), NAME, ())
        method = method_at(cls, place, "__call__", place)
        type.__setattr__(cls, "__call__", method)


def _text(slot: int, written: Callable[..., Any]) -> str:
    """The code. An entry is held while it runs: it may be dropped from the list meanwhile."""
    machine = host.host()

    def call(kind: str, function: str, *args: str) -> str:
        return f"call {kind} inttoptr (i64 {address(function)} to ptr)({', '.join(args)})"

    return f"""
target triple = "{machine.triple}"
target datalayout = "{machine.layout}"

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define ptr @{NAME}(ptr %self, ptr %arguments, i64 %given, ptr %names) nounwind {{
start:
  %at = getelementptr i8, ptr %self, i64 {slot}
  %list = load ptr, ptr %at
  %by_name = icmp ne ptr %names, null
  %empty = icmp eq ptr %list, null
  %other = or i1 %by_name, %empty
  br i1 %other, label %general, label %head
head:
  %k = phi i64 [ 0, %start ], [ %next, %misfit ]
  %length_at = getelementptr i8, ptr %list, i64 {LENGTH}
  %length = load i64, ptr %length_at
  %more = icmp slt i64 %k, %length
  br i1 %more, label %try, label %general
try:
  %items_at = getelementptr i8, ptr %list, i64 {ITEMS}
  %items = load ptr, ptr %items_at
  %entry_at = getelementptr ptr, ptr %items, i64 %k
  %entry = load ptr, ptr %entry_at
  {call("void", "Py_IncRef", "ptr %entry")}
  %result = {call("ptr", "PyObject_Vectorcall", "ptr %entry", "ptr %arguments", "i64 %given", "ptr null")}
  {call("void", "Py_DecRef", "ptr %entry")}
  %unfit = icmp eq ptr %result, inttoptr (i64 {id(MISFIT)} to ptr)
  br i1 %unfit, label %misfit, label %done
misfit:
  {call("void", "Py_DecRef", "ptr %result")}
  %next = add i64 %k, 1
  br label %head
done:
  ret ptr %result
general:
  br i1 %by_name, label %named, label %all
named:
  %named_at = getelementptr i8, ptr %names, i64 {LENGTH}
  %named_count = load i64, ptr %named_at
  br label %all
all:
  %named_given = phi i64 [ 0, %general ], [ %named_count, %named ]
  %values = add i64 %given, %named_given
  %places = add i64 %values, 1
  %row = alloca ptr, i64 %places
  store ptr %self, ptr %row
  %behind = getelementptr ptr, ptr %row, i64 1
  %bytes = shl i64 %values, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %behind, ptr %arguments, i64 %bytes, i1 false)
  %count = add i64 %given, 1
  %said = {call("ptr", "PyObject_Vectorcall", f"ptr inttoptr (i64 {id(written)} to ptr)", "ptr %row", "i64 %count", "ptr %names")}
  ret ptr %said
}}
"""
