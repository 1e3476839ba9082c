"""The calls that the breadth benchmark times: one for each function of docs/functions.md that works on arrays.

`ARGUMENTS` has what a letter stands for; in the texts of `CALLS` letters are parameters, and the rest is Python. `LEFT_OUT`
says why other functions have no row.
"""

from functools import cache

import numpy as np

N = 1_000_000
ROWS = 1000  # of a matrix with N elements
SMALL = 200  # of a matrix for what takes n^3


@cache
def arguments() -> dict[str, np.ndarray]:
    r = np.random.default_rng(7)
    square = r.normal(size=(SMALL, SMALL))
    return {
        "x": r.normal(size=N),
        "y": r.normal(size=N),
        "u": r.uniform(0.01, 0.99, N),
        "v": r.uniform(0.01, 0.99, N),
        "p": r.gamma(2.0, 2.0, N) + 0.05,
        "s": np.sort(r.normal(size=N)),
        "k": r.integers(0, 1000, N),
        "l": r.integers(0, 60, N),
        "j": r.permutation(N),
        "b": r.normal(size=N) > 0,
        "z": r.normal(size=N) + 1j * r.normal(size=N),
        "a": r.normal(size=(ROWS, ROWS)),
        "c": r.normal(size=(ROWS, ROWS)),
        "w": r.normal(size=ROWS),
        "g": np.sort(r.normal(size=ROWS)),
        "h": r.integers(0, ROWS, (ROWS, ROWS)),
        "d": r.uniform(0.1, 1.0, (N // 4, 4)),
        "e": r.normal(size=(N // 3, 3)),
        "f": r.normal(size=(N // 3, 3)),
        "m": square,
        "n": square @ square.T / SMALL + np.eye(SMALL),
        "o": r.normal(size=(SMALL, 10)),
        "t": r.normal(size=(4 * SMALL, 20)),
        "i": np.tril(square) + SMALL * np.eye(SMALL),
    }


def each(names: str, form: str, module: str = "np") -> list[str]:
    return [form.format(f"{module}.{name}") for name in names.split()]


def special(names: str, form: str) -> list[str]:
    return each(names, form, "special")


ELEMENTS = [
    *each("sin cos tan sinh cosh tanh exp exp2 expm1 arctan arcsinh cbrt sinc rint deg2rad rad2deg isnan isinf isfinite", "{}(x)"),
    *each("signbit negative positive abs fabs sign square reciprocal floor ceil trunc fix", "{}(x)"),
    *each("logical_not frexp modf round nan_to_num i0", "{}(x)"),
    *each("log log2 log10 log1p sqrt arccosh", "{}(p + 1.0)"),
    *each("arcsin arccos arctanh", "{}(u)"),
    *each("add subtract multiply divide arctan2 hypot copysign nextafter logaddexp logaddexp2 floor_divide remainder", "{}(x, y)"),
    *each("maximum minimum fmax fmin fmod heaviside divmod", "{}(x, y)"),
    *each("equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor isclose", "{}(x, y)"),
    *each("bitwise_and bitwise_or bitwise_xor left_shift right_shift", "{}(k, l)"),
    *each("conj angle real imag abs exp iscomplex isreal", "{}(z)"),
    *each("power float_power", "{}(p, x)"),
    "np.invert(k)", "np.ldexp(x, l)", "np.where(b, x, y)", "np.clip(x, -1.0, 1.0)", "np.select([x > 1.0, x > 0.0], [x, y], 0.0)",
    "np.choose(l % 2, (x, y))", "np.piecewise(x, [x < 0.0, x >= 0.0], [lambda t: -t, lambda t: t * t])", "np.unwrap(x)",
]  # fmt: skip

REDUCTIONS = [
    *each("sum prod max min ptp argmax argmin any all count_nonzero mean var std average", "{}(x)"),
    *each("nansum nanprod nanmax nanmin nanargmax nanargmin nanmean nanvar nanstd", "{}(x)"),
    *each("sum max argmax mean std any", "{}(a, axis=0)"),
    *each("sum max argmax mean std any", "{}(a, axis=1)"),
    *each("cumsum cumprod nancumsum nancumprod cumulative_sum cumulative_prod", "{}(x)"),
    *each("median nanmedian", "{}(x)"),
    *each("percentile nanpercentile", "{}(x, 30)"),
    *each("quantile nanquantile", "{}(x, 0.3)"),
    *each("cov corrcoef", "{}(x, y)"),
    *each("array_equal allclose", "{}(x, x + 0.0)"),
    "np.cumsum(a, axis=0)", "np.cumsum(a, axis=1)", "np.median(a, axis=0)", "np.median(a, axis=1)", "np.quantile(x, [0.1, 0.5, 0.9])",
    "np.average(x, weights=p)", "np.cov(t.T)", "np.corrcoef(t.T)", "np.trapezoid(y, s)", "np.apply_over_axes(np.sum, a, [0, 1])",
    "np.apply_along_axis(np.mean, 1, a)", "special.logsumexp(x)", "special.softmax(x)", "special.log_softmax(x)",
    "special.logsumexp(a, axis=1)", "special.softmax(a, axis=1)",
    *each("zscore skew kurtosis", "{}(x)", "stats"),
    *each("gmean hmean", "{}(p)", "stats"),
    "stats.pearsonr(x, y)",
]  # fmt: skip

SELECTIONS = [
    *each("sort argsort unique", "{}(x)"),
    *each("nonzero flatnonzero argwhere", "{}(x > 0.5)"),
    *each("compress extract", "{}(b, x)"),
    *each("partition argpartition", "{}(x, 1000)"),
    "np.sort(a, axis=0)", "np.sort(a, axis=1)", "np.sort(k)", "np.lexsort((k, l))", "np.searchsorted(g, x)", "np.interp(x, g, w)",
    "np.digitize(x, g)", "np.histogram(x, 50)", "np.histogram_bin_edges(x, 50)", "np.bincount(k)", "np.bincount(k, weights=x)",
    "np.isin(k, l)", "np.take(x, j)", "np.take_along_axis(a, h, axis=1)", "x[j]", "x[b]", "x[x > 0.5]", "np.where(x > 0.0)",
    "np.unravel_index(j, (1000, 1000))", "np.ravel_multi_index((k, k), (1000, 1000))",
    "out = x.copy(); out[b] = 0.0; return out", "out = x.copy(); out[b] = y[b]; return out", "out = x.copy(); np.copyto(out, y, where=b); return out",
    "out = x.copy(); np.put(out, j, y); return out", "out = x.copy(); np.place(out, b, y); return out",
    "out = a.copy(); np.put_along_axis(out, h, 0.0, axis=1); return out", "out = a.copy(); np.fill_diagonal(out, 0.0); return out",
    "out = np.zeros(1000); np.add.at(out, k, x); return out", "np.add.reduce(x)", "np.add.accumulate(x)", "np.multiply.outer(w, g)",
]  # fmt: skip

SHAPES = [
    *each("copy flip ravel array asarray diff ediff1d gradient", "{}(x)"),
    *each("concatenate hstack vstack stack column_stack dstack", "{}((x, y))"),
    *each("transpose flipud fliplr rot90 tril triu diag diagonal trace", "{}(a)"),
    *each("zeros ones empty arange", "{}(len(x))"),
    *each("eye identity tri", "{}(len(w))"),
    *each("zeros_like ones_like empty_like", "{}(x)"),
    *each("atleast_1d atleast_2d atleast_3d squeeze", "{}(x)"),
    *each("split array_split", "{}(x, 4)"),
    *each("vsplit hsplit", "{}(a, 4)"),
    *each("expand_dims rollaxis", "{}(a, 1)"),
    *each("tril_indices triu_indices diag_indices", "{}(len(w))"),
    *each("tril_indices_from triu_indices_from diag_indices_from", "{}(a)"),
    "np.full(1000000, x[0])", "np.full_like(x, 2.0)", "np.linspace(0.0, x[0], 1000000)", "np.logspace(0.0, u[0], 1000000)",
    "np.geomspace(1.0, 1.0 + u[0], 1000000)", "np.indices((1000, 1000))", "np.meshgrid(w, g)",
    "np.ascontiguousarray(a.T)", "np.array(a.T)", "np.reshape(x, (1000, 1000))", "np.swapaxes(a, 0, 1)", "np.moveaxis(a, 0, 1)",
    "np.append(x, y)", "np.insert(x, 5, 1.0)", "np.delete(x, 5)", "np.dsplit(a.reshape(100, 100, 100), 4)", "np.block([[a, c], [c, a]])",
    "np.broadcast_to(w, (1000, 1000)) + a", "np.broadcast_arrays(w, a)", "np.repeat(w, 1000)", "np.tile(w, 1000)", "np.resize(x, 900000)",
    "np.roll(x, 5)", "np.roll(a, 3, axis=1)", "np.pad(x, 5)", "np.pad(a, 5, mode='reflect')", "np.diagflat(w)", "np.vander(x, 4)",
    "np.gradient(a)", "np.fromfunction(lambda r, q: r * q, (1000, 1000))", "a[np.ix_(h[0], h[1])]",
    "np.kaiser(100000, 14.0)", "scipy.linalg.block_diag(m, n)",
]  # fmt: skip

PRODUCTS = [
    *each("dot vdot inner", "{}(x, y)"),
    *each("matmul dot", "{}(m, n)"),
    *each("vecdot linalg.vecdot", "{}(a, c)"),
    *each("outer linalg.outer", "{}(w, g)"),
    *each("cross linalg.cross", "{}(e, f)"),
    *each("polyadd polysub", "{}(x, y)"),
    "np.tensordot(m, n, 1)", "np.einsum('ij,ij->i', a, c)", "np.einsum('ij,jk->ik', m, n)", "np.einsum('ij->j', a)",
    "np.kron(o, o[:10])", "np.matvec(a, w)", "np.vecmat(w, a)", "np.convolve(x, w[:50])", "np.correlate(x, w[:50])", "np.polyval(w[:8], x)",
    "np.polyfit(x, y, 2)", "np.polyfit(x, y, 8)", "np.polymul(w, g)", "np.polyder(x)", "np.polyint(x)",
]  # fmt: skip

MATRICES = [
    *each("inv det slogdet cond matrix_norm matrix_rank svd svdvals qr pinv eigvals eig", "{}(m)", "np.linalg"),
    *each("cholesky eigh eigvalsh", "{}(n)", "np.linalg"),
    *each("norm", "{}(x)", "np.linalg"),
    *each("diagonal trace matrix_transpose", "{}(a)", "np.linalg"),
    "np.linalg.solve(m, o)", "np.linalg.lstsq(t, t[:, 0])", "np.linalg.matrix_power(m, 5)", "np.linalg.multi_dot([m, n, o])",
    "np.linalg.norm(m, 2)", "np.linalg.norm(a, axis=1)", "np.linalg.vector_norm(x)", "np.matrix_transpose(a)",
    *each("inv det expm lu_factor svd svdvals pinv eigvals norm", "{}(m)", "scipy.linalg"),
    *each("cholesky eigh eigvalsh cho_factor", "{}(n)", "scipy.linalg"),
    "scipy.linalg.qr(m, mode='economic')", "scipy.linalg.solve(m, o)", "scipy.linalg.solve_triangular(i, o, lower=True)", "scipy.linalg.lstsq(t, t[:, 0])",
    "scipy.linalg.cho_solve((i, True), o)", "scipy.linalg.lu_solve(scipy.linalg.lu_factor(m), o)",
]  # fmt: skip

TRANSFORMS = [
    *each("fft rfft ihfft", "{}(x)", "np.fft"),
    *each("fft ifft irfft hfft", "{}(z)", "np.fft"),
    *each("fft2 fftn rfft2 rfftn", "{}(a)", "np.fft"),
    *each("ifft2 ifftn irfft2 irfftn", "{}(z.reshape(1000, 1000))", "np.fft"),
    *each("fftshift ifftshift", "{}(x)", "np.fft"),
    *each("fftfreq rfftfreq", "{}(len(x))", "np.fft"),
    "np.fft.fft(a)", "np.fft.fft(x[:999983])", "np.fft.rfft(x[:524288])",
]  # fmt: skip

SPECIAL = [
    *special("erf erfc gamma gammaln digamma expit exp2 expm1 cbrt j0 j1 i0 i1 i0e i1e erfcx dawsn log_ndtr rgamma", "{}(x)"),
    *special("ndtr log_expit softplus exprel cosm1 exp10 sindg cosdg tandg cotdg wrightomega", "{}(x)"),
    *special("y0 y1 k0 k1 k0e k1e exp1 expi loggamma", "{}(p)"),
    *special("erfi erfinv erfcinv ndtri logit ellipk ellipe entr log1p", "{}(u)"),
    *special("jv yv iv ive kv kve hyp0f1", "{}(1.5, p)"),
    *special("jn yn kn expn", "{}(2, p)"),
    *special("gammainc gammaincc beta betaln", "{}(2.5, p)"),
    *special("gammaincinv gammainccinv", "{}(2.5, u)"),
    *special("betainc betaincc betaincinv", "{}(1.5, 2.5, u)"),
    *special("eval_chebyt eval_chebyu eval_hermite eval_hermitenorm eval_laguerre eval_legendre", "{}(5, x)"),
    *special("boxcox boxcox1p inv_boxcox inv_boxcox1p", "{}(p, 0.3)"),
    *special("xlogy xlog1py rel_entr kl_div", "{}(u, p)"),
    *special("huber pseudo_huber", "{}(1.0, x)"),
    *special("comb perm", "{}(k, 3)"),
    "special.ndtri_exp(-p)", "special.owens_t(0.75, x)", "special.stdtr(3.0, x)", "special.stdtrit(3.0, u)", "special.binom(7.5, p)",
    "special.hyp1f1(1.5, 2.5, x)", "special.hyp2f1(1.0, 1.5, 2.5, u)", "special.factorial(l)", "special.multigammaln(p + 2.0, 3)",
    "special.radian(x, y, p)",
]  # fmt: skip

# Arguments of a distribution after the point, and points that it has.
CONTINUOUS = {
    "norm": ("0.5, 2.0", "x"), "halfnorm": ("0.0, 2.0", "p"), "lognorm": ("0.8", "p"), "gamma": ("2.5, 0.0, 2.0", "p"),
    "chi2": ("3.0", "p"), "invgamma": ("2.5", "p"), "expon": ("0.0, 2.0", "p"), "uniform": ("-3.0, 6.0", "x"),
    "beta": ("1.5, 2.5", "u"), "truncnorm": ("-1.0, 2.0", "x"), "laplace": ("0.5, 2.0", "x"), "logistic": ("0.5, 2.0", "x"),
    "gumbel_r": ("0.5, 2.0", "x"), "rayleigh": ("0.0, 2.0", "p"), "weibull_min": ("1.5", "p"), "cauchy": ("0.5, 2.0", "x"),
    "halfcauchy": ("0.0, 2.0", "p"), "t": ("3.0, 0.5, 2.0", "x"), "f": ("3.0, 5.0", "p"), "pareto": ("2.5", "p + 1.0"),
    "vonmises": ("1.5", "x"),
}  # fmt: skip
DISCRETE = {
    "poisson": ("20.0", "l"), "binom": ("60, 0.3", "l"), "bernoulli": ("0.3", "l % 2"), "geom": ("0.3", "l + 1"),
    "nbinom": ("5, 0.3", "l"),
}  # fmt: skip
DISTRIBUTIONS = [
    *(f"stats.{name}.logpdf({x}, {a})" for name, (a, x) in CONTINUOUS.items()),
    *(f"stats.{name}.cdf({x}, {a})" for name, (a, x) in CONTINUOUS.items() if name != "vonmises"),
    *(f"stats.{name}.ppf(u, {a})" for name, (a, _) in CONTINUOUS.items() if name != "vonmises"),
    *(f"stats.{name}.logpmf({x}, {a})" for name, (a, x) in DISCRETE.items()),
    *(f"stats.{name}.cdf({x}, {a})" for name, (a, x) in DISCRETE.items()),
    *(f"stats.norm.{method}(x)" for method in ("pdf", "logcdf", "sf", "logsf")),
    "stats.multivariate_normal.logpdf(e, np.zeros(3), 2.0 * np.eye(3))", "stats.dirichlet.logpdf(u[:4] / np.sum(u[:4]), p[:4])",
    "stats.multinomial.logpmf(l[:4], np.sum(l[:4]), u[:4] / np.sum(u[:4]))",
]  # fmt: skip

CALLS = {
    "elements": ELEMENTS, "reductions": REDUCTIONS, "selections": SELECTIONS, "shapes": SHAPES, "products": PRODUCTS,
    "matrices": MATRICES, "transforms": TRANSFORMS, "special functions": SPECIAL, "distributions": DISTRIBUTIONS,
}  # fmt: skip

OTHER_NAMES = "the same under another name"
OF_TYPES = "about types and shapes, known when it is compiled"
LEFT_OUT = {
    **dict.fromkeys(
        "np.amax np.amin np.around np.concat np.permute_dims np.radians np.degrees np.asanyarray np.in1d".split(),
        OTHER_NAMES,
    ),
    **dict.fromkeys("scipy.special.psi".split(), OTHER_NAMES),
    **dict.fromkeys("np.bool_ np.int32 np.int64 np.float32 np.float64 np.complex64 np.complex128".split(), OF_TYPES),
    **dict.fromkeys("np.shape np.ndim np.size np.isscalar np.finfo np.iinfo np.dtype np.result_type".split(), OF_TYPES),
    "np.mask_indices": "refused, but for masks of known triangles",
    "np.real_if_close": "refused for complex numbers",
    **dict.fromkeys("np.promote_types np.issubdtype np.can_cast np.iscomplexobj np.isrealobj".split(), OF_TYPES),
}
SAME_CODE = ("scipy.fft.",)  # as the functions of NumPy of that name
# Not compared number by number: orders of values, signs of vectors, what is left open, what is only rounding.
ROUGH = (
    "np.partition", "np.argpartition", "np.empty", "np.linalg.eig(", "np.linalg.eigh(", "np.linalg.eigvals(", "np.linalg.svd", "np.linalg.lstsq", "scipy.linalg.svd",
    "scipy.linalg.eigh(", "scipy.linalg.eigvals(", "scipy.linalg.cho_factor", "scipy.linalg.lu_factor", "scipy.linalg.lstsq",
)  # fmt: skip
