"""Matrix products of BLAS that do not become slow where numbers are tiny.

`guarded` takes the name of a product (`dgemm`) and gives an object with a routine that is called like it and gives what
it gives, and the name by which that calls the plain one. It is written in LLVM IR and holds no Python. Small products
of real numbers do not get as far as BLAS (small_products.py).

Note [Tiny factors]
Between zero and the least normal number (2.2e-308) a processor may take 150 cycles for a multiplication instead of half
a cycle, and a product uses each of its elements many times: softmax weights of which a thirtieth lies there made one
eight times slower. Multiplying an operand by a power of two, and the result by its inverse, changes no digit as long as
nothing overflows; so that is done when a sample of the operands has such numbers. Where something overflows after all,
the result is not finite, and the product is made again from the operands as they are. Sums that themselves lie in that
range are rounded once, at the end, and not at every step. The sample is bounded, so a large product hardly notices it,
and depends on nothing but the operands: the same ones give the same result.
"""

from __future__ import annotations

import functools
import re

from tapeless.backends.cpu.small_products import small_products
from tapeless.backends.llvm import host, optimize

CHUNK = 64  # neighbours that are looked at together
SAMPLES = 128  # chunks that are looked at
SMALL = 4096  # multiplications up to which a product of real numbers is made without BLAS
REUSE = 8  # sizes from which on it pays to look

SINGLE: dict[str, str | int] = {"T": "float", "I": "i32", "vT": "v8f32", "ALIGN": 4, "MANTISSA": 23, "BIAS": 127,
          "LEAST": "0x3810000000000000", "SHIFT": 64}  # fmt: skip
DOUBLE: dict[str, str | int] = {"T": "double", "I": "i64", "vT": "v8f64", "ALIGN": 8, "MANTISSA": 52, "BIAS": 1023,
          "LEAST": "0x0010000000000000", "SHIFT": 512}  # fmt: skip
KINDS = {"sgemm": (SINGLE, 1), "dgemm": (DOUBLE, 1), "cgemm": (SINGLE, 2), "zgemm": (DOUBLE, 2)}  # numbers per element

ROUTINES = """
; Is a number in this row tiny? Comparisons take no longer on those, and see none where they count as zero.
define internal i1 @has_tiny(ptr %row, i64 %length) nounwind {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %found = phi <8 x i1> [ zeroinitializer, %entry ], [ %all, %loop ]
  %mask = call <8 x i1> @llvm.get.active.lane.mask.v8i1.i64(i64 %i, i64 %length)
  %p = getelementptr T, ptr %row, i64 %i
  %x = call <8 x T> @llvm.masked.load.vT.p0(ptr %p, i32 ALIGN, <8 x i1> %mask, <8 x T> zeroinitializer)
  %size = call <8 x T> @llvm.fabs.vT(<8 x T> %x)
  %some = fcmp ogt <8 x T> %size, zeroinitializer
  %little = fcmp olt <8 x T> %size, splat (T LEAST)
  %both = and <8 x i1> %some, %little
  %all = or <8 x i1> %found, %both
  %next = add i64 %i, 8
  %more = icmp slt i64 %next, %length
  br i1 %more, label %loop, label %done
done:
  %any = call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> %all)
  ret i1 %any
}

; Is a number in the sample tiny? Chunks are taken at multiples of the golden ratio, so as not to step over a pattern.
define internal i1 @looks_tiny(ptr %matrix, i64 %lines, i64 %length, i64 %ld) nounwind {
entry:
  %up = add i64 %length, CHUNK_LESS
  %in_line = udiv i64 %up, CHUNK
  %chunks = mul i64 %lines, %in_line
  %few = icmp ule i64 %chunks, SAMPLES
  %count = select i1 %few, i64 %chunks, i64 SAMPLES
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %again ]
  %turned = mul i64 %k, 2654435769
  %fraction = and i64 %turned, 4294967295
  %spread = mul i64 %fraction, %chunks
  %somewhere = lshr i64 %spread, 32
  %chunk = select i1 %few, i64 %k, i64 %somewhere
  %line = udiv i64 %chunk, %in_line
  %which = urem i64 %chunk, %in_line
  %start = mul i64 %which, CHUNK
  %left = sub i64 %length, %start
  %size = call i64 @llvm.smin.i64(i64 %left, i64 CHUNK)
  %before = mul i64 %line, %ld
  %at = add i64 %before, %start
  %p = getelementptr T, ptr %matrix, i64 %at
  %tiny = call i1 @has_tiny(ptr %p, i64 %size)
  br i1 %tiny, label %yes, label %again
again:
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; Is a number infinite or none?
define internal i1 @has_wild(ptr %matrix, i64 %lines, i64 %length, i64 %ld) nounwind {
entry:
  br label %outer
outer:
  %line = phi i64 [ 0, %entry ], [ %line_next, %outer_next ]
  %before = phi <8 x i1> [ zeroinitializer, %entry ], [ %all, %outer_next ]
  %at = mul i64 %line, %ld
  %row = getelementptr T, ptr %matrix, i64 %at
  br label %loop
loop:
  %i = phi i64 [ 0, %outer ], [ %next, %loop ]
  %found = phi <8 x i1> [ %before, %outer ], [ %all, %loop ]
  %mask = call <8 x i1> @llvm.get.active.lane.mask.v8i1.i64(i64 %i, i64 %length)
  %p = getelementptr T, ptr %row, i64 %i
  %x = call <8 x T> @llvm.masked.load.vT.p0(ptr %p, i32 ALIGN, <8 x i1> %mask, <8 x T> zeroinitializer)
  %size = call <8 x T> @llvm.fabs.vT(<8 x T> %x)
  %wild = fcmp ueq <8 x T> %size, splat (T 0x7FF0000000000000)
  %all = or <8 x i1> %found, %wild
  %next = add i64 %i, 8
  %more = icmp slt i64 %next, %length
  br i1 %more, label %loop, label %outer_next
outer_next:
  %line_next = add i64 %line, 1
  %outer_more = icmp slt i64 %line_next, %lines
  br i1 %outer_more, label %outer, label %done
done:
  %any = call i1 @llvm.vector.reduce.or.v8i1(<8 x i1> %all)
  ret i1 %any
}

; 2^e
define internal T @power(i16 %e) nounwind {
  %biased = add i16 %e, BIAS
  %wide = zext i16 %biased to I
  %bits = shl I %wide, MANTISSA
  %x = bitcast I %bits to T
  ret T %x
}

; A copy, each number times 2^shift, its lines one after the other; null without memory for it.
define internal ptr @scaled(ptr %matrix, i64 %lines, i64 %length, i64 %ld, i16 %shift) nounwind {
entry:
  %numbers = mul i64 %lines, %length
  %bytes = mul i64 %numbers, ALIGN
  %copy = call ptr @malloc(i64 %bytes)
  %nothing = icmp eq ptr %copy, null
  %factor = call T @power(i16 %shift)
  %one = insertelement <8 x T> poison, T %factor, i64 0
  %factors = shufflevector <8 x T> %one, <8 x T> poison, <8 x i32> zeroinitializer
  br i1 %nothing, label %done, label %outer
outer:
  %line = phi i64 [ 0, %entry ], [ %line_next, %outer_next ]
  %from_at = mul i64 %line, %ld
  %from_row = getelementptr T, ptr %matrix, i64 %from_at
  %to_at = mul i64 %line, %length
  %to_row = getelementptr T, ptr %copy, i64 %to_at
  br label %loop
loop:
  %i = phi i64 [ 0, %outer ], [ %next, %loop ]
  %mask = call <8 x i1> @llvm.get.active.lane.mask.v8i1.i64(i64 %i, i64 %length)
  %from = getelementptr T, ptr %from_row, i64 %i
  %to = getelementptr T, ptr %to_row, i64 %i
  %x = call <8 x T> @llvm.masked.load.vT.p0(ptr %from, i32 ALIGN, <8 x i1> %mask, <8 x T> zeroinitializer)
  %y = fmul <8 x T> %x, %factors
  call void @llvm.masked.store.vT.p0(<8 x T> %y, ptr %to, i32 ALIGN, <8 x i1> %mask)
  %next = add i64 %i, 8
  %more = icmp slt i64 %next, %length
  br i1 %more, label %loop, label %outer_next
outer_next:
  %line_next = add i64 %line, 1
  %outer_more = icmp slt i64 %line_next, %lines
  br i1 %outer_more, label %outer, label %done
done:
  ret ptr %copy
}

; Lines of an operand in memory, their length in numbers, their distance.
define internal { i64, i64, i64 } @shape(ptr %trans, i64 %rows, i64 %columns, ptr %ld) nounwind {
  %letter = load i8, ptr %trans
  %plain = icmp eq i8 %letter, 78
  %lines = select i1 %plain, i64 %columns, i64 %rows
  %elements = select i1 %plain, i64 %rows, i64 %columns
  %length = mul i64 %elements, PARTS
  %narrow = load i32, ptr %ld
  %wide = sext i32 %narrow to i64
  %distance = mul i64 %wide, PARTS
  %first = insertvalue { i64, i64, i64 } poison, i64 %lines, 0
  %second = insertvalue { i64, i64, i64 } %first, i64 %length, 1
  %third = insertvalue { i64, i64, i64 } %second, i64 %distance, 2
  ret { i64, i64, i64 } %third
}

define void @NAME(ptr %ta, ptr %tb, ptr %pm, ptr %pn, ptr %pk, ptr %alpha, ptr %a, ptr %lda, ptr %b, ptr %ldb,
                  ptr %beta, ptr %c, ptr %ldc) nounwind {
entry:
  %alpha_s = alloca [2 x T], align 16
  %lda_s = alloca i32
  %ldb_s = alloca i32
  %m4 = load i32, ptr %pm
  %n4 = load i32, ptr %pn
  %k4 = load i32, ptr %pk
  %m = sext i32 %m4 to i64
  %n = sext i32 %n4 to i64
  %k = sext i32 %k4 to i64
  %alpha_r = load T, ptr %alpha
  %mn = mul i64 %m, %n
  %work = mul i64 %mn, %k
  %some = icmp sgt i64 %work, 0
  %little = icmp sle i64 %work, SMALL
  %beta_r = load T, ptr %beta
  %beta_i_at = getelementptr T, ptr %beta, i64 PARTS_LESS
  %beta_i = load T, ptr %beta_i_at
  %none_r = fcmp oeq T %beta_r, 0.0
  %none_i = fcmp oeq T %beta_i, 0.0
  %anew = and i1 %none_r, %none_i
  %small_and_anew = and i1 %little, %anew
  %by_hand = and i1 %some, %small_and_anew
  br i1 %by_hand, label %small, label %large
small:
  call void @small(ptr %ta, ptr %tb, i64 %m, i64 %n, i64 %k, T %alpha_r, ptr %a, ptr %lda, ptr %b, ptr %ldb, ptr %c,
                   ptr %ldc)
  ret void
large:
  %least_mn = call i64 @llvm.smin.i64(i64 %m, i64 %n)
  %least = call i64 @llvm.smin.i64(i64 %least_mn, i64 %k)
  %used = icmp sge i64 %least, REUSE
  %worth = and i1 %used, %anew
  br i1 %worth, label %look, label %plain
look:
  %sa = call { i64, i64, i64 } @shape(ptr %ta, i64 %m, i64 %k, ptr %lda)
  %sb = call { i64, i64, i64 } @shape(ptr %tb, i64 %k, i64 %n, ptr %ldb)
  %al = extractvalue { i64, i64, i64 } %sa, 0
  %an = extractvalue { i64, i64, i64 } %sa, 1
  %ad = extractvalue { i64, i64, i64 } %sa, 2
  %bl = extractvalue { i64, i64, i64 } %sb, 0
  %bn = extractvalue { i64, i64, i64 } %sb, 1
  %bd = extractvalue { i64, i64, i64 } %sb, 2
  %a_tiny = call i1 @looks_tiny(ptr %a, i64 %al, i64 %an, i64 %ad)
  %b_tiny = call i1 @looks_tiny(ptr %b, i64 %bl, i64 %bn, i64 %bd)
  %either = or i1 %a_tiny, %b_tiny
  br i1 %either, label %copy_a, label %plain
copy_a:
  %both = and i1 %a_tiny, %b_tiny
  %shift = select i1 %both, i16 HALF_SHIFT, i16 SHIFT
  br i1 %a_tiny, label %scale_a, label %copy_b
scale_a:
  %a_copy = call ptr @scaled(ptr %a, i64 %al, i64 %an, i64 %ad, i16 %shift)
  %a_failed = icmp eq ptr %a_copy, null
  br i1 %a_failed, label %plain, label %copy_b
copy_b:
  %a_own = phi ptr [ null, %copy_a ], [ %a_copy, %scale_a ]
  %a_used = phi ptr [ %a, %copy_a ], [ %a_copy, %scale_a ]
  %a_far = phi i64 [ %ad, %copy_a ], [ %an, %scale_a ]
  br i1 %b_tiny, label %scale_b, label %multiply
scale_b:
  %b_copy = call ptr @scaled(ptr %b, i64 %bl, i64 %bn, i64 %bd, i16 %shift)
  %b_failed = icmp eq ptr %b_copy, null
  br i1 %b_failed, label %give_up, label %multiply
multiply:
  %b_own = phi ptr [ null, %copy_b ], [ %b_copy, %scale_b ]
  %b_used = phi ptr [ %b, %copy_b ], [ %b_copy, %scale_b ]
  %b_far = phi i64 [ %bd, %copy_b ], [ %bn, %scale_b ]
  %inverse = call T @power(i16 LESS_SHIFT)
  %scaled_r = fmul T %alpha_r, %inverse
  store T %scaled_r, ptr %alpha_s
  %imaginary = getelementptr T, ptr %alpha, i64 PARTS_LESS
  %alpha_i = load T, ptr %imaginary
  %scaled_i = fmul T %alpha_i, %inverse
  %imaginary_s = getelementptr T, ptr %alpha_s, i64 1
  store T %scaled_i, ptr %imaginary_s
  %a_elements = udiv i64 %a_far, PARTS
  %b_elements = udiv i64 %b_far, PARTS
  %a_ld = trunc i64 %a_elements to i32
  %b_ld = trunc i64 %b_elements to i32
  store i32 %a_ld, ptr %lda_s
  store i32 %b_ld, ptr %ldb_s
  call void @PLAIN(ptr %ta, ptr %tb, ptr %pm, ptr %pn, ptr %pk, ptr %alpha_s, ptr %a_used, ptr %lda_s, ptr %b_used,
                   ptr %ldb_s, ptr %beta, ptr %c, ptr %ldc)
  call void @free(ptr %b_own)
  call void @free(ptr %a_own)
  %length = mul i64 %m, PARTS
  %ldc4 = load i32, ptr %ldc
  %ldc8 = sext i32 %ldc4 to i64
  %cd = mul i64 %ldc8, PARTS
  %overflowed = call i1 @has_wild(ptr %c, i64 %n, i64 %length, i64 %cd)
  br i1 %overflowed, label %plain, label %done
done:
  ret void
give_up:
  call void @free(ptr %a_own)
  br label %plain
plain:
  call void @PLAIN(ptr %ta, ptr %tb, ptr %pm, ptr %pn, ptr %pk, ptr %alpha, ptr %a, ptr %lda, ptr %b, ptr %ldb,
                   ptr %beta, ptr %c, ptr %ldc)
  ret void
}

declare void @PLAIN(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)
declare ptr @malloc(i64)
declare void @free(ptr)
declare i64 @llvm.smin.i64(i64, i64)
declare <8 x i1> @llvm.get.active.lane.mask.v8i1.i64(i64, i64)
declare i1 @llvm.vector.reduce.or.v8i1(<8 x i1>)
declare <8 x T> @llvm.masked.load.vT.p0(ptr, i32, <8 x i1>, <8 x T>)
declare void @llvm.masked.store.vT.p0(<8 x T>, ptr, i32, <8 x i1>)
declare <8 x T> @llvm.fabs.vT(<8 x T>)
"""


def is_guarded(name: str) -> bool:
    return name in KINDS


@functools.cache
def guarded(name: str) -> bytes:
    """The object: it has `guarded_NAME` and calls `plain_NAME`."""
    kind, parts = KINDS[name]
    words = kind | {
        "NAME": f"guarded_{name}",
        "PLAIN": f"plain_{name}",
        "PARTS": parts,
        "PARTS_LESS": parts - 1,
        "HALF_SHIFT": int(kind["SHIFT"]) // 2,
        "LESS_SHIFT": -int(kind["SHIFT"]),
        "CHUNK": CHUNK,
        "CHUNK_LESS": CHUNK - 1,
        "SAMPLES": SAMPLES,
        "REUSE": REUSE,
        "SMALL": SMALL if parts == 1 else -1,
    }
    text = re.sub(r"\b(vT|[A-Z_]+)\b", lambda word: str(words.get(word[0], word[0])), small_products() + ROUTINES)
    target = host.host()
    module = optimize.parse(f'target datalayout = "{target.layout}"\ntarget triple = "{target.triple}"\n{text}')
    data: bytes = host.machine().emit_object(module)
    return data
