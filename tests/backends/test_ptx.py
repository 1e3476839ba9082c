"""Kernels: that every row of the ops table compiles for a GPU, that ptxas takes the text, and what kernels compute."""

import shutil
import subprocess

import mpmath
import numpy as np
import pytest

from tapeless.backends.llvm import complexmath
from tapeless.backends.llvm.ptx import assembly, kernels_of, libdevice, parts_of, ptx
from tapeless.ir.types import SCALAR, Const, DType, Var, i64
from tapeless.lower.ir.loopir import Atomic, Barrier, Buffer, Check, For, If, Let, Load, Space, Store, Tag
from tapeless.lower.ir.walk import is_blocked
from tapeless.lower.kernels import outlined
from tapeless.ops.table import TABLE
from tests.backends import cuda
from tests.backends.native import let, param, program, var
from tests.backends.test_ops import compare_complex, evaluate, inputs, is_exact

f64 = DType.f64
ON_CPU_ONLY = {name for name, row in TABLE.items() if row.only_host} | {
    f"{name}-complex" for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")
}
needs_libdevice = pytest.mark.skipif(libdevice() is None, reason="no libdevice")


def assemble(text, tmp_path, arch="sm_80"):
    if shutil.which("ptxas"):
        source = tmp_path / "kernel.ptx"
        source.write_text(text)
        subprocess.run(["ptxas", f"-arch={arch}", str(source), "-o", str(tmp_path / "kernel.cubin")], check=True)


def map_program(name, dtypes, result):
    buffers = [param(f"x{k}", d, written=False) for k, d in enumerate(dtypes)]
    out, n, i, y = param("out", result), var("n"), var("i"), Var("y", SCALAR[result])
    args = [Var(f"a{k}", SCALAR[d]) for k, d in enumerate(dtypes)]
    body = [Load(a, b, i) for a, b in zip(args, buffers)] + [Let(y, name, tuple(args)), Store(out, i, y)]
    return program([*buffers, out, n], [For(i, i64(0), n, tuple(body), tag=Tag.grid)])


def saxpy():
    x, y, n, i, c = param("x", written=False), param("y"), var("n"), var("i"), var("c", f64)
    v, u = var("v", f64), var("u", f64)
    body = (
        Load(v, x, i),
        Load(u, y, i),
        p := let("p", "mul", v, c),
        s := let("s", "add", p.var, u),
        Store(y, i, s.var),
    )
    return program([x, y, n, c], [For(i, i64(0), n, body, tag=Tag.grid)])


def test_kernels_of_many_parameters():
    """More than 4352 bytes of them are allowed from PTX 8.1 on."""
    out, n, i = param("out"), var("n"), var("i")
    numbers = [var(f"c{k}", f64) for k in range(600)]
    sums = [let("s0", "add", numbers[0], numbers[1])]
    for k, c in enumerate(numbers[2:]):
        sums.append(let(f"s{k + 1}", "add", sums[-1].var, c))
    loop = For(i, i64(0), n, (*sums, Store(out, i, sums[-1].var)), tag=Tag.grid)
    assert ".version 8.1" in ptx(program([out, n, *numbers], [loop]))[0]
    assert ".version 8.0" in ptx(saxpy())[0]


def failing():
    x, n, i, v = param("x"), var("n"), var("i"), var("v", f64)
    ok = let("ok", "lt", v, Const(0.5), dtype=DType.bool)
    return program([x, n], [For(i, i64(0), n, (Load(v, x, i), ok, Check(ok.var, 2, (i, v))), tag=Tag.grid)])


def histogram():
    """Counts each number, and the last place where it stands."""
    x, y, z, n, i, k = param("x", DType.i64, False), param("y"), param("z"), var("n"), var("i"), var("k")
    place = let("place", "convert", i, dtype=f64)
    body = (Load(k, x, i), place, Atomic("add", y, k, Const(1.0)), Atomic("max", z, k, place.var))
    return program([x, y, z, n], [For(i, i64(0), n, body, tag=Tag.grid)])


def block_sums():
    """Each block sums 256 numbers in shared memory, by halves."""
    x, y, blocks, b = param("x", written=False), param("y"), var("blocks"), var("b")
    shared = Buffer("cells", f64, Space.shared, 256)
    t, v, u, w = var("t"), var("v", f64), var("u", f64), var("w", f64)
    base = let("base", "mul", b, i64(256))
    at = let("at", "add", base.var, t)
    body = [base, For(t, i64(0), i64(256), (at, Load(v, x, at.var), Store(shared, t, v)), tag=Tag.block), Barrier()]
    half = 128
    while half:
        t, v, u = var("t"), var("v", f64), var("u", f64)
        other = let("other", "add", t, i64(half))
        total = let("total", "add", v, u)
        body += [For(t, i64(0), i64(half), (other, Load(v, shared, t), Load(u, shared, other.var), total,
                                            Store(shared, t, total.var)), tag=Tag.block), Barrier()]  # fmt: skip
        half //= 2
    t = var("t")
    body += [For(t, i64(0), i64(1), (Load(w, shared, i64(0)), Store(y, b, w)), tag=Tag.block)]
    return program([x, y, blocks], [For(b, i64(0), blocks, tuple(body), tag=Tag.grid)])


def on_cpu_only(name, dtype):
    return bool({name, f"{name}-complex" if dtype.is_complex else ""} & ON_CPU_ONLY)


@pytest.mark.sampled(4)
@needs_libdevice
@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("dtype", [DType.i32, f64, DType.f32, DType.c128, DType.bool], ids=lambda d: d.value)
def test_rows_compile(dtype, part, tmp_path):
    """A kernel for each row: most of the time goes by reading libdevice."""
    programs = []
    for name, row in [*TABLE.items()][part::8]:
        if dtype not in row.dtypes:
            continue
        dtypes = [DType.bool] * (name == "select") + [dtype] * 4
        result = DType.i64 if name == "convert" else row.result(dtypes)
        made = map_program(name, dtypes[: row.arity], result)
        if on_cpu_only(name, dtype):
            with pytest.raises(NotImplementedError, match=getattr(row.llvm, "name", name)):
                ptx(made)
        else:
            programs.append(made)
    whole = program([p for made in programs for p in made.params], [s for made in programs for s in made.body])
    text, kernels = ptx(whole)
    assert len(kernels) == len(programs) == text.count(".entry f_kernel")
    if dtype in (f64, DType.c128):
        assemble(text, tmp_path)


@pytest.mark.parametrize("make", [saxpy, failing, histogram, block_sums])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_programs_assemble(make, arch, tmp_path):
    text, kernels = ptx(make(), arch)
    assert len(kernels) == 1 and f".target {arch}" in text
    assemble(text, tmp_path, arch)


def test_a_kernel_tells_its_parameters_and_bounds():
    prog = saxpy()
    _, (kernel,) = ptx(prog)
    x, y, n, c = prog.params
    loop = kernel.loop
    assert kernel.params == (c, x, y) and (loop.lo, loop.hi, loop.step) == (i64(0), n, 1) and not is_blocked(loop)
    assert is_blocked(ptx(block_sums())[1][0].loop)


def test_grid_loops_inside_host_code():
    outer, k, flag = saxpy(), var("k"), var("flag", DType.bool)
    prog = program([*outer.params, flag], [For(k, i64(0), i64(3), (If(flag, outer.body),)), *failing().body])
    _, kernels = ptx(prog)
    assert [kernel.name for kernel in kernels] == ["f_kernel1", "f_kernel2"]


@pytest.mark.parametrize("most", [1, 3, 100])
def test_parts_are_worked_on_apart(most, monkeypatch):
    """All kernels are in one of them, with the text that they have together."""
    monkeypatch.setattr("tapeless.backends.llvm.ptx.PART", 5)
    makes = [make() for make in (saxpy, failing, histogram, block_sums) * 2]
    whole = outlined(program([p for m in makes for p in m.params], [s for m in makes for s in m.body]), Tag.grid)
    parts = list(parts_of(whole, most))
    assert len(parts) == min(most, len(makes))
    names = [kernel.name for part in parts for kernel in part.kernels]
    assert sorted(names) == sorted(kernel.name for kernel in kernels_of(whole)) and len(names) == len(makes)
    for part in parts:
        text = assembly(part, "sm_90")
        assert [name for name in names if f".entry {name}(" in text] == [
            name for name in names if name in {kernel.name for kernel in part.kernels}
        ]


def test_allocation_inside_a_kernel_is_refused():
    from tapeless.lower.ir.loopir import Alloc

    with pytest.raises(NotImplementedError, match="inside a kernel"):
        ptx(program([], [For(var("i"), i64(0), i64(4), (Alloc(Buffer("h", f64, Space.heap), i64(3)),), tag=Tag.grid)]))


@pytest.mark.parametrize(
    "name",
    ["exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "pow"],
)
@pytest.mark.parametrize("dtype", [DType.c128, DType.c64], ids=lambda d: d.value)
def test_formulas_of_complex_functions(name, dtype, monkeypatch):
    """On the CPU, in place of the library."""
    monkeypatch.setattr(complexmath, "has_library", lambda w: False)
    rng = np.random.default_rng(4)
    columns = [(rng.standard_normal(200) * 2 + 2j * rng.standard_normal(200)).astype(dtype.numpy)] * TABLE[name].arity
    got = evaluate(name, columns, [dtype] * len(columns), dtype)
    compare_complex(columns, got, TABLE[name].numpy(*columns), 1e-13 if dtype is DType.c128 else 2e-5)


@pytest.mark.parametrize("dtype", [DType.c128, DType.c64], ids=lambda d: d.value)
def test_the_logarithm_of_numbers_of_modulus_one(dtype, monkeypatch):
    """The real part is not lost; it is of the size of the distance from the circle."""
    monkeypatch.setattr(complexmath, "has_library", lambda w: False)
    rng = np.random.default_rng(6)
    angles, away = rng.uniform(-np.pi, np.pi, 400), 1 + rng.normal(size=400) * 10.0 ** rng.uniform(-20, 1, 400)
    special = [1 + 1e-9j, 1e-9 - 1j, 1.0, 1j, -1 - 1e-30j, 0.6 + 0.8j, 1e30 + 1e30j, 1e-30j, 0.0, np.inf + 1j]
    z = np.concatenate([away * np.exp(1j * angles), special]).astype(dtype.numpy)
    got = evaluate("log", [z], [dtype], dtype)
    eps = np.finfo(dtype.numpy).eps
    for x, found in zip(z, got, strict=True):
        with mpmath.workdps(50):
            wanted = complex(mpmath.log(complex(x))) if x else complex(-np.inf, 0.0)
        exact = found.real == wanted.real
        assert exact or abs(found.real - wanted.real) <= 4 * eps * abs(wanted.real) + eps**2
        assert abs(found.imag - wanted.imag) <= 4 * eps * abs(wanted.imag)


# --- on a GPU ---

needs_gpu = pytest.mark.skipif(not cuda.available(), reason="no GPU")


@needs_gpu
def test_saxpy_on_a_gpu():
    X, Y = np.arange(1000.0), np.ones(1000)
    cuda.run(saxpy(), {"x": X, "y": Y, "n": 1000, "c": 2.0})
    np.testing.assert_array_equal(Y, 2 * X + 1)


@needs_gpu
def test_errors_on_a_gpu():
    code, args = cuda.run(failing(), {"x": np.linspace(0, 0.4, 500), "n": 500})
    assert code == 0
    code, args = cuda.run(failing(), {"x": np.linspace(0, 1, 500), "n": 500})
    assert code == 3 and args[0] >= 250


@needs_gpu
def test_atomics_on_a_gpu():
    X, Y, Z = np.random.default_rng(0).integers(0, 4, 10_000), np.zeros(4), np.zeros(4)
    cuda.run(histogram(), {"x": X, "y": Y, "z": Z, "n": len(X)})
    np.testing.assert_array_equal(Y, np.bincount(X))
    np.testing.assert_array_equal(Z, [np.flatnonzero(X == k)[-1] for k in range(4)])


@needs_gpu
def test_shared_memory_on_a_gpu():
    X, Y = np.arange(256.0 * 7), np.zeros(7)
    cuda.run(block_sums(), {"x": X, "y": Y, "blocks": 7}, block=64)
    np.testing.assert_array_equal(Y, X.reshape(7, 256).sum(axis=1))


@needs_gpu
@needs_libdevice
@pytest.mark.parametrize("name, row", TABLE.items(), ids=list(TABLE))
def test_rows_on_a_gpu(name, row):
    for dtype in DType:
        if dtype not in row.dtypes or name == "convert":
            continue
        if on_cpu_only(name, dtype) or name == "quotient_by":  # tests/lower/test_places.py
            continue
        columns, dtypes = inputs(name, row, dtype)
        if row.borrowed:
            columns = [np.linspace(0.05, 0.95, 50, dtype=c.dtype) for c in columns]
        result = row.result(dtypes)
        got = np.zeros(len(columns[0]), result.numpy)
        arrays = {f"x{k}": column for k, column in enumerate(columns)}
        cuda.run(map_program(name, dtypes, result), {**arrays, "out": got, "n": len(got)})
        want = np.asarray(row.numpy(*columns))
        if is_exact(name, row, result) and not dtype.is_complex:
            np.testing.assert_array_equal(got, want)
        elif not result.is_complex:
            tolerance = 1e-13 if result.real is f64 else 2e-5
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * 1e-3)
        else:
            finite = np.isfinite(want) & np.isfinite(got)
            assert (np.abs(got[finite] - want[finite]) <= 1e-4 * np.maximum(np.abs(want[finite]), 1e-3)).all()
