"""Small matrix products in LLVM IR: what they take in BLAS is mostly the way there.

`small_products` gives the text of a routine `@small` for products.py, in whose words it is written: T is the type of
the numbers, vT its vectors of 8, ALIGN its size. Such code is not repeated wherever a product is called for, which
would take longer to compile than everything around it.
"""

from __future__ import annotations

STRIPS = """
; C = alpha A B in strips of 4 columns and of 1.
define internal void @small(ptr %ta, ptr %tb, i64 %m, i64 %n, i64 %k, T %alpha, ptr %a, ptr %plda, ptr %b, ptr %pldb,
                            ptr %c, ptr %pldc) nounwind {
entry:
  %ta1 = load i8, ptr %ta
  %tb1 = load i8, ptr %tb
  %a_plain = icmp eq i8 %ta1, 78
  %b_plain = icmp eq i8 %tb1, 78
  %lda4 = load i32, ptr %plda
  %ldb4 = load i32, ptr %pldb
  %ldc4 = load i32, ptr %pldc
  %lda = sext i32 %lda4 to i64
  %ldb = sext i32 %ldb4 to i64
  %ldc = sext i32 %ldc4 to i64
  %a_down = select i1 %a_plain, i64 1, i64 %lda
  %a_right = select i1 %a_plain, i64 %lda, i64 1
  %b_down = select i1 %b_plain, i64 1, i64 %ldb
  %b_right = select i1 %b_plain, i64 %ldb, i64 1
  br label %loop
loop:
  %j = phi i64 [ 0, %entry ], [ %after4, %strip4 ], [ %after1, %strip1 ]
  %left = sub i64 %n, %j
  %b_at = mul i64 %j, %b_right
  %b_j = getelementptr T, ptr %b, i64 %b_at
  %c_at = mul i64 %j, %ldc
  %c_j = getelementptr T, ptr %c, i64 %c_at
  %four = icmp sge i64 %left, 4
  br i1 %four, label %strip4, label %rest
strip4:
  call void @strip4(ptr %a, i64 %a_down, i64 %a_right, ptr %b_j, i64 %b_down, i64 %b_right, ptr %c_j, i64 %ldc,
                    i64 %m, i64 %k, T %alpha)
  %after4 = add i64 %j, 4
  br label %loop
rest:
  %any = icmp sgt i64 %left, 0
  br i1 %any, label %strip1, label %done
strip1:
  call void @strip1(ptr %a, i64 %a_down, i64 %a_right, ptr %b_j, i64 %b_down, i64 %b_right, ptr %c_j, i64 %ldc,
                    i64 %m, i64 %k, T %alpha)
  %after1 = add i64 %j, 1
  br label %loop
done:
  ret void
}

declare <8 x T> @llvm.masked.gather.vT.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x T>)
declare <8 x T> @llvm.fmuladd.vT(<8 x T>, <8 x T>, <8 x T>)
"""


def small_products() -> str:
    return f"{_strip(4)}{_strip(1)}{STRIPS}"


def _strip(width: int) -> str:
    """`width` columns of C, by blocks of 8 rows that stay in registers. The element (r, l) of A is at r * a_down +
    l * a_right.
    """
    columns = range(width)
    return "\n".join(
        [
            f"define internal void @strip{width}(ptr %a, i64 %a_down, i64 %a_right, ptr %b, i64 %b_down, i64 %b_right,",
            "    ptr %c, i64 %ldc, i64 %rows, i64 %k, T %alpha) nounwind {",
            "entry:",
            "  %together = icmp eq i64 %a_down, 1",
            *_splat("%downs", "i64", "%a_down"),
            *_splat("%alphas", "T", "%alpha"),
            "  %lanes = mul <8 x i64> %downs, <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>",
            "  br label %block",
            "block:",
            "  %i = phi i64 [ 0, %entry ], [ %i_next, %end ]",
            "  %mask = call <8 x i1> @llvm.get.active.lane.mask.v8i1.i64(i64 %i, i64 %rows)",
            "  %a_at = mul i64 %i, %a_down",
            "  %a_i = getelementptr T, ptr %a, i64 %a_at",
            "  br label %term",
            "term:",
            "  %l = phi i64 [ 0, %block ], [ %l_next, %add ]",
            *[f"  %sum{w} = phi <8 x T> [ zeroinitializer, %block ], [ %more{w}, %add ]" for w in columns],
            "  %a_off = mul i64 %l, %a_right",
            "  %a_l = getelementptr T, ptr %a_i, i64 %a_off",
            "  br i1 %together, label %load, label %gather",
            "load:",
            "  %loaded = call <8 x T> @llvm.masked.load.vT.p0(ptr %a_l, i32 ALIGN, <8 x i1> %mask, <8 x T> zeroinitializer)",
            "  br label %add",
            "gather:",
            "  %places = getelementptr T, ptr %a_l, <8 x i64> %lanes",
            "  %gathered = call <8 x T> @llvm.masked.gather.vT.v8p0(<8 x ptr> %places, i32 ALIGN, <8 x i1> %mask,",
            "                                                       <8 x T> zeroinitializer)",
            "  br label %add",
            "add:",
            "  %column = phi <8 x T> [ %loaded, %load ], [ %gathered, %gather ]",
            "  %b_off0 = mul i64 %l, %b_down",
            *[f"  %b_off{w + 1} = add i64 %b_off{w}, %b_right" for w in range(width - 1)],
            *[line for w in columns for line in _add_term(w)],
            "  %l_next = add i64 %l, 1",
            "  %l_more = icmp slt i64 %l_next, %k",
            "  br i1 %l_more, label %term, label %end",
            "end:",
            "  %c_0 = getelementptr T, ptr %c, i64 %i",
            *[f"  %c_{w + 1} = getelementptr T, ptr %c_{w}, i64 %ldc" for w in range(width - 1)],
            *[line for w in columns for line in _store_sum(w)],
            "  %i_next = add i64 %i, 8",
            "  %i_more = icmp slt i64 %i_next, %rows",
            "  br i1 %i_more, label %block, label %done",
            "done:",
            "  ret void",
            "}\n\n",
        ]
    )


def _splat(name: str, kind: str, value: str) -> list[str]:
    return [
        f"  {name}.one = insertelement <8 x {kind}> poison, {kind} {value}, i64 0",
        f"  {name} = shufflevector <8 x {kind}> {name}.one, <8 x {kind}> poison, <8 x i32> zeroinitializer",
    ]


def _add_term(w: int) -> list[str]:
    return [
        f"  %b_{w} = getelementptr T, ptr %b, i64 %b_off{w}",
        f"  %factor{w} = load T, ptr %b_{w}",
        *_splat(f"%factors{w}", "T", f"%factor{w}"),
        f"  %more{w} = call <8 x T> @llvm.fmuladd.vT(<8 x T> %column, <8 x T> %factors{w}, <8 x T> %sum{w})",
    ]


def _store_sum(w: int) -> list[str]:
    return [
        f"  %result{w} = fmul <8 x T> %more{w}, %alphas",
        f"  call void @llvm.masked.store.vT.p0(<8 x T> %result{w}, ptr %c_{w}, i32 ALIGN, <8 x i1> %mask)",
    ]
