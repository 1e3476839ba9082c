"""Distributions of scipy.stats with their arguments: what `st.gamma(2.0, scale=3.0)` is in compiled code.

A `Form` says what a continuous distribution is for loc=0 and scale=1, a `Mass` what a discrete one is for loc=0;
`Continuous` and `Discrete` have SciPy's methods for any of them. All is computed in double precision, as SciPy gives it.

Note [Ends of the support]
Formulas are evaluated inside of the support only: elsewhere they get a point `inner` and their value is dropped, so that
no slope becomes 0 times infinity. Where the density is infinite, or its logarithm is, all slopes count as 0. A form whose
formula does not hold at an end of its support says in `at_low` and `at_high` what the logarithm is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapeless.prelude.registry import refuse

Formula = Callable[..., Any]  # of x and the shapes, or of the shapes alone


def above_zero(*shapes: Any) -> Any:
    valid: Any = True
    for a in shapes:
        valid = valid & (a > 0)
    return valid


@dataclass(frozen=True)
class Form:
    """`usual`: shapes that are valid, which stand in for others. The last three are formulas of the shapes."""

    logpdf: Formula
    cdf: Formula | None = None
    sf: Formula | None = None
    ppf: Formula | None = None
    isf: Formula | None = None
    pdf: Formula | None = None  # the exponential of logpdf unless it is given; those below, logarithms
    logcdf: Formula | None = None
    logsf: Formula | None = None
    low: float = -np.inf
    high: float = np.inf
    inner: float = 0.5
    bounds: Formula | None = None  # low and high, where they depend on the shapes
    at_low: Formula | None = None
    at_high: Formula | None = None
    valid: Formula = above_zero
    usual: tuple[float, ...] = ()
    mean: Formula | None = None
    var: Formula | None = None
    entropy: Formula | None = None


def double(value: Any) -> Any:
    return np.asarray(value, dtype=np.float64)


def log_of(p: Any, rest: Any) -> Any:
    """The logarithm of a probability, given also what it lacks to 1; its slope at 0 counts as 0."""
    most, some = p > 0.5, p > 0
    small = np.where(some, np.log(np.where(some, p, 1.0)), np.where(p == 0, -np.inf, np.nan))
    return np.where(most, np.log1p(-np.where(most, rest, 0.0)), small)


def _shapes(d: Any, valid: Any) -> Any:
    return [np.where(valid, double(d.shapes[k]), d.form.usual[k]) for k in range(len(d.shapes))]


def _valid(d: Any) -> Any:
    return d.form.valid(*[double(a) for a in d.shapes])


def _support(form: Any, shapes: Any) -> Any:
    """The lowest and the highest point, and one between them."""
    if form.bounds is None:
        return form.low, form.high, form.inner
    low, high = form.bounds(*shapes)
    return low, high, np.minimum(np.maximum(form.inner, low), high)


def _density(d: Any, x: Any, log: bool) -> Any:
    form, scale = d.form, double(d.scale)
    valid = _valid(d) & (scale > 0)
    shapes, scale = _shapes(d, valid), np.where(scale > 0, scale, 1.0)
    low, high, inner = _support(form, shapes)
    y = (double(x) - double(d.loc)) / scale
    inside = np.isfinite(y)
    inside = inside & ((low <= y) if form.at_low is None else (low < y))
    inside = inside & ((y <= high) if form.at_high is None else (y < high))
    point = np.where(inside, y, inner)
    if log:
        value = np.where(inside, form.logpdf(point, *shapes), -np.inf)
    elif form.pdf is not None:
        value = np.where(inside, form.pdf(point, *shapes), 0.0)
    else:
        value = np.where(inside, np.exp(form.logpdf(point, *shapes)), 0.0)
    if form.at_low is not None:
        end = form.at_low(np.where(y == low, y, low), *shapes)
        value = np.where(y == low, end if log else np.exp(end), value)
    if form.at_high is not None:
        end = form.at_high(np.where(y == high, y, high), *shapes)
        value = np.where(y == high, end if log else np.exp(end), value)
    endless = np.isinf(value)
    finite = np.where(endless, 0.0, value)
    value = np.where(endless, value, finite - np.log(scale) if log else finite / scale)
    return np.where(valid & (y == y), value, np.nan)


def _probability(d: Any, x: Any, formula: Any, below: float, above: float) -> Any:
    form, scale = d.form, double(d.scale)
    valid = _valid(d) & (scale > 0)
    shapes = _shapes(d, valid)
    low, high, inner = _support(form, shapes)
    y = (double(x) - double(d.loc)) / np.where(scale > 0, scale, 1.0)
    inside = (low < y) & (y < high)
    value = formula(np.where(inside, y, inner), *shapes)
    value = np.where(inside, value, np.where(y <= low, below, above))
    return np.where(valid & (y == y), value, np.nan)


def _quantile(d: Any, q: Any, formula: Any, falling: bool) -> Any:
    p, loc, scale = double(q), double(d.loc), double(d.scale)
    valid = _valid(d) & (scale > 0) & (loc == loc)
    shapes = _shapes(d, valid)
    low, high, _ = _support(d.form, shapes)
    inside = (p > 0) & (p < 1)
    value = np.where(inside, formula(np.where(inside, p, 0.5), *shapes) * scale + loc, np.nan)
    value = np.where(p == (1.0 if falling else 0.0), _placed(low, loc, scale), value)
    value = np.where(p == (0.0 if falling else 1.0), _placed(high, loc, scale), value)
    return np.where(valid, value, np.nan)


def _placed(end: Any, loc: Any, scale: Any) -> Any:
    endless = np.isinf(end)
    return np.where(endless, end, np.where(endless, 0.0, end) * scale + loc)


def _known(formula: Any) -> Any:
    if formula is None:
        refuse("this method of this distribution cannot be compiled", "write its formula.")
    return formula


@dataclass(frozen=True)
class Continuous:
    form: Form
    shapes: Any
    loc: Any
    scale: Any

    def logpdf(self, x: Any) -> Any:
        return _density(self, x, True)

    def pdf(self, x: Any) -> Any:
        return _density(self, x, False)

    def cdf(self, x: Any) -> Any:
        return _probability(self, x, _known(self.form.cdf), 0.0, 1.0)

    def sf(self, x: Any) -> Any:
        return _probability(self, x, _known(self.form.sf), 1.0, 0.0)

    def logcdf(self, x: Any) -> Any:
        if self.form.logcdf is None:
            return log_of(self.cdf(x), self.sf(x))
        return _probability(self, x, self.form.logcdf, -np.inf, 0.0)

    def logsf(self, x: Any) -> Any:
        if self.form.logsf is None:
            return log_of(self.sf(x), self.cdf(x))
        return _probability(self, x, self.form.logsf, 0.0, -np.inf)

    def ppf(self, q: Any) -> Any:
        return _quantile(self, q, _known(self.form.ppf), False)

    def isf(self, q: Any) -> Any:
        return _quantile(self, q, _known(self.form.isf), True)

    def median(self) -> Any:
        return self.ppf(0.5)

    def mean(self) -> Any:
        loc, scale = double(self.loc), double(self.scale)
        valid = _valid(self) & (scale > 0)
        return np.where(valid, _known(self.form.mean)(*_shapes(self, valid)) * scale + loc, np.nan)

    def var(self) -> Any:
        scale = double(self.scale)
        valid = _valid(self) & (scale > 0) & (double(self.loc) == double(self.loc))
        return np.where(valid, _known(self.form.var)(*_shapes(self, valid)) * scale * scale, np.nan)

    def std(self) -> Any:
        return np.sqrt(self.var())

    def entropy(self) -> Any:
        scale = double(self.scale)
        valid = _valid(self) & (scale > 0) & (double(self.loc) == double(self.loc))
        value = _known(self.form.entropy)(*_shapes(self, valid))
        return np.where(valid, value + np.log(np.where(scale > 0, scale, 1.0)), np.nan)


# -- discrete ones


@dataclass(frozen=True)
class Mass:
    """`first` is the least number that there may be, `last` gives the largest, if there is one. As in `Form`, formulas take
    a number and the shapes, or the shapes alone.
    """

    logpmf: Formula
    pmf: Formula
    cdf: Formula
    sf: Formula
    valid: Formula
    usual: tuple[float, ...]
    mean: Formula
    var: Formula
    first: float = 0.0
    last: Formula | None = None
    logsf: Formula | None = None


def _mass(d: Any, k: Any, formula: Any, outside: float) -> Any:
    form, valid = d.form, _valid(d)
    shapes, at = _shapes(d, valid), double(k) - double(d.loc)
    n = np.floor(at)  # nothing changes smoothly with it
    inside = (at == n) & (n >= form.first) & np.isfinite(n)
    if form.last is not None:
        inside = inside & (n <= form.last(*shapes))
    value = np.where(inside, formula(np.where(inside, n, form.first), *shapes), outside)
    return np.where(valid & (at == at), value, np.nan)


def _summed(d: Any, k: Any, formula: Any, below: float, above: float) -> Any:
    form, valid = d.form, _valid(d)
    shapes, at = _shapes(d, valid), double(k) - double(d.loc)
    n = np.floor(at)
    inside, over = (n >= form.first) & np.isfinite(n), n == np.inf
    if form.last is not None:
        inside, over = inside & (n < form.last(*shapes)), n >= form.last(*shapes)
    value = np.where(inside, formula(np.where(inside, n, form.first), *shapes), np.where(over, above, below))
    return np.where(valid & (at == at), value, np.nan)


@dataclass(frozen=True)
class Discrete:
    form: Mass
    shapes: Any
    loc: Any

    def logpmf(self, k: Any) -> Any:
        return _mass(self, k, self.form.logpmf, -np.inf)

    def pmf(self, k: Any) -> Any:
        return _mass(self, k, self.form.pmf, 0.0)

    def cdf(self, x: Any) -> Any:
        return _summed(self, x, self.form.cdf, 0.0, 1.0)

    def sf(self, x: Any) -> Any:
        return _summed(self, x, self.form.sf, 1.0, 0.0)

    def logcdf(self, x: Any) -> Any:
        return log_of(self.cdf(x), self.sf(x))

    def logsf(self, x: Any) -> Any:
        if self.form.logsf is None:
            return log_of(self.sf(x), self.cdf(x))
        return _summed(self, x, self.form.logsf, 0.0, -np.inf)

    def mean(self) -> Any:
        valid = _valid(self)
        return np.where(valid, self.form.mean(*_shapes(self, valid)) + double(self.loc), np.nan)

    def var(self) -> Any:
        valid = _valid(self) & (double(self.loc) == double(self.loc))
        return np.where(valid, self.form.var(*_shapes(self, valid)), np.nan)

    def std(self) -> Any:
        return np.sqrt(self.var())
