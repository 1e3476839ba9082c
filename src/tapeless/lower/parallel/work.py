"""Whether a sweep is worth cutting into one chunk per thread: a rough count of its scalar operations."""

from __future__ import annotations

from tapeless.ir.core import Apply, Atom, Body, Call, For, Hist, If, Lambda, Library, Scatter, Stm, Sweep, Var, While
from tapeless.ir.effects import is_callback
from tapeless.ir.operands import regions
from tapeless.ir.types import DType, dim_atom, i64
from tapeless.ir.walk import all_stms
from tapeless.lower.core.code import ONE
from tapeless.lower.core.lowerer import Lowerer
from tapeless.ops.table import op as row

PARALLEL_WORK = 60_000  # scalar operations below which a region is not worth its start (1 to 2 us)
GUESS = 16  # iterations assumed of a loop whose count is not known
MOST_BLOCKS = 1024  # of threads on a GPU, where each takes several elements
LIGHT = 64  # operations of an element of which a thread of a GPU takes several
CALL = 1000  # assumed of a function: small ones are not called (passes/inline.py)


def cost_of(body: Body) -> int:
    """Rough scalar operations of one run."""
    total = 1
    for stm in body.stms:
        inner = sum(cost_of(r.body) for r in regions(stm.exp))
        match stm.exp:
            case Apply(op=name):
                total += row(name).cost
            case Sweep(width=n) | Hist(width=n) | Scatter(width=n):
                total += inner * (n if isinstance(n, int) else GUESS)
            case For() | While():
                total += inner * GUESS
            case If():
                total += inner
            case Library():
                total += 100
            case Call():
                total += CALL
            case _:
                total += 1 + inner
    return min(total, 10**9)


def worth_cutting(lo: Lowerer, exp: Sweep | Hist) -> bool:
    if lo.code.parallel or not lo.schedule.chunks or any(is_callback(s.exp) for s in all_stms(exp.lam.body)):
        return False
    if isinstance(exp.width, int):
        return exp.width >= 8 and exp.width * cost_of(exp.lam.body) >= PARALLEL_WORK
    return True


def pieces_of(lo: Lowerer, n: Atom, lam: Lambda, body: Body, more: int = 0) -> Atom:
    """How many chunks: one per thread, or one when the work is small."""
    return pieces_for(lo, n, work_of(lo, n, lam, body, more))


def pieces_for(lo: Lowerer, n: Atom, work: Atom) -> Atom:
    code = lo.code
    enough = code.compare("ge", work, i64(PARALLEL_WORK))
    most = code.let("min", DType.i64, lo.threads, n, label="pieces")
    return code.let("select", DType.i64, enough, most, ONE, label="pieces")


def work_of(lo: Lowerer, n: Atom, lam: Lambda, body: Body, more: int = 0) -> Atom:
    """Scalar operations of n elements, whose lambda is made, but for what is done beforehand, by `body`."""
    return lo.code.mul(n, _work(lo, lam, body, more))


def blocks_of(lo: Lowerer, n: Atom, each: Atom) -> Atom:
    """How many blocks of threads go through n elements, if `each` pay for one more. At least one."""
    code = lo.code
    enough = code.let("floordiv", DType.i64, code.add(n, code.sub(each, ONE)), each, label="blocks")
    most = code.let("min", DType.i64, enough, i64(MOST_BLOCKS), label="blocks")
    return code.let("max", DType.i64, most, ONE, label="blocks")


def share(lo: Lowerer, piece: Atom, n: Atom, pieces: Atom) -> tuple[Atom, Atom]:
    """The first element of a chunk, and the first behind it."""
    code = lo.code
    start = code.let("floordiv", DType.i64, code.mul(piece, n), pieces, label="start", exact=True)
    stop = code.let("floordiv", DType.i64, code.mul(code.add(piece, ONE), n), pieces, label="stop", exact=True)
    return start, stop


def _work(lo: Lowerer, lam: Lambda, body: Body, more: int) -> Atom:
    """Scalar operations of one element, with the sizes of inner sweeps as far as they are known outside."""
    code = lo.code
    inside = {*lam.params, *(v for s in lam.body.stms for v in s.vars)}
    known = cost_of(Body(tuple(s for s in body.stms if not _sized(s, inside)), ())) + more
    total: Atom = i64(known)
    for s in body.stms:
        if _sized(s, inside):
            assert isinstance(s.exp, (Sweep, For))
            one = s.exp.lam.body if isinstance(s.exp, Sweep) else s.exp.body
            total = code.add(total, code.mul(lo.atom(_trips(s.exp)), i64(cost_of(one))))
    return code.let("min", DType.i64, total, i64(2**20), label="work")


def _sized(stm: Stm, inside: set[Var]) -> bool:
    """Whether the number of iterations is known only at run time, but before the region."""
    if not isinstance(stm.exp, (Sweep, For)):
        return False
    trips = _trips(stm.exp)
    return isinstance(trips, Var) and trips not in inside


def _trips(exp: Sweep | For) -> Atom:
    return dim_atom(exp.width) if isinstance(exp, Sweep) else exp.bound
