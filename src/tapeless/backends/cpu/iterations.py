"""Some iterations of a parallel loop, one after the other: what every parallel runtime does with its share of them.

`EACH` is LLVM IR. It calls fn(ctx, t) for t0 <= t < t1 until one of them fails, on this thread or on another one: the error
record comes first in the context (Note [Regions] in backends/llvm/region.py).
"""

EACH = """
define internal void @each(ptr %fn, ptr %ctx, i64 %t0, i64 %t1) nounwind {
entry:
  %err = load ptr, ptr %ctx
  br label %look
look:
  %t = phi i64 [ %t0, %entry ], [ %next, %work ]
  %code = load atomic i64, ptr %err monotonic, align 8
  %sound = icmp eq i64 %code, 0
  %more = icmp slt i64 %t, %t1
  %both = and i1 %sound, %more
  br i1 %both, label %work, label %done
work:
  call void %fn(ptr %ctx, i64 %t)
  %next = add i64 %t, 1
  br label %look
done:
  ret void
}
"""
