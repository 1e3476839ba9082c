"""The exact tests of the published reversible systems: values, inverses and gradients that are known."""

import math

import numpy as np
import pytest

import tapeless as tp

pytestmark = pytest.mark.filterwarnings("error::tapeless.errors.InversionDrift")


@tp.reversible
def norm(res, y, x):
    for i in range(len(x)):
        y += x[i] ** 2
    res += np.sqrt(y)


def test_norm():
    x = np.array([1.0, 2.0, 3.0])
    res, y, x = norm(0.0, 0.0, x)
    assert (res, y, x.tolist()) == (3.7416573867739413, 14.0, [1.0, 2.0, 3.0])
    res, y, x = (~norm)(res, y, x)
    assert (res, y, x.tolist()) == (0.0, 0.0, [1.0, 2.0, 3.0])
    grads = tp.grad(lambda res, y, x: norm(res, y, x)[0], argnums=(0, 1, 2))(0.0, 0.0, x)
    assert grads[0] == 1.0
    assert grads[1] == pytest.approx(0.1336306209562122, rel=1e-14)
    np.testing.assert_allclose(grads[2], [0.2672612419124244, 0.5345224838248488, 0.8017837257372732], rtol=1e-14)
    assert x.tolist() == [1.0, 2.0, 3.0]


@tp.reversible
def multiplier(x, a, b):
    x += a * b


def test_multiplier():
    assert multiplier(2, 3, 5) == (17, 3, 5)
    assert (~multiplier)(17, 3, 5) == (2, 3, 5)
    grads = tp.grad(lambda x, a, b: multiplier(x, a, b)[0], argnums=(0, 1, 2))
    assert grads(0.0, 2.0, 3.0) == (1.0, 3.0, 2.0)
    back = tp.grad(lambda x, a, b: (~multiplier)(x, a, b)[0], argnums=(0, 1, 2))
    assert back(0.0, 0.4, 0.6) == (1.0, -0.6, -0.4)


@tp.reversible
def bessel(out, z, *, order=2, least=1e-8):
    with tp.ancilla(0) as k, tp.ancilla(0.0) as term, tp.ancilla(0.0) as total:
        with tp.compute:
            term += (z / 2) ** order / math.factorial(order)
            total += term
            while tp.between(abs(term) > least, k != 0):
                k += 1
                term *= -((z / 2) ** 2) / (k * (k + order))
                total += term
        out += total


def test_bessel():
    value, z = bessel(0.0, 1.0)
    assert value == pytest.approx(0.114903484929806, abs=2e-15)
    assert (~bessel)(value, z)[0] == pytest.approx(0.0, abs=1e-15)

    def j2(z):
        return bessel(0.0, z)[0]

    assert tp.grad(j2)(1.0) == pytest.approx(0.210243615851831, rel=1e-12)
    assert tp.hessian(j2)(1.0) == pytest.approx(0.134466838533916, rel=1e-11)
    assert tp.grad(tp.grad(j2))(1.0) == pytest.approx(0.134466838533916, rel=1e-11)

    def j2_to_the_end(z):
        return bessel(0.0, z, least=1e-20)[0]

    assert j2_to_the_end(1.0) == pytest.approx(0.11490348493190048, rel=1e-14)
    assert tp.grad(j2_to_the_end)(1.0) == pytest.approx(0.21024361588113255, rel=1e-13)
    assert tp.grad(tp.grad(j2_to_the_end))(1.0) == pytest.approx(0.13446683891456889, rel=1e-12)


@tp.reversible
def linear(y, x1, x2):
    y += (np.sin(x1 / x2) + x1 / x2 - np.exp(x2)) * (x1 / x2 - np.exp(x2))


def test_nested_expression():
    assert linear(0.0, 1.5, 0.5)[0] == pytest.approx(2.0166466694282014, rel=1e-15)
    grads = tp.grad(lambda x1, x2: linear(0.0, x1, x2)[0], argnums=(0, 1))(1.5, 0.5)
    assert grads == pytest.approx((3.0118433276739066, -13.723961509314075), rel=1e-14)


@tp.reversible
def mixed(a, b, c, d):
    a += b * c
    a += b**d
    c += b / d
    a, c = tp.rot(a, c, d)
    b += d**2
    a += c * d


def test_hessian():
    start = np.array([0.0, 2.0, 1.0, 3.0])

    def f(x):
        return mixed(x[0], x[1], x[2], x[3])[0]

    assert f(start) == pytest.approx(-10.8514872206437772, rel=1e-14)
    grads = [-0.56663247242084, -8.403254640758, -4.2443624427029, -32.856097544166]
    np.testing.assert_allclose(tp.grad(f)(start), grads, rtol=1e-12)
    wanted = np.zeros((4, 4))
    for (i, j), h in {
        (0, 3): -2.9699774898, (1, 1): -6.79958966905, (1, 2): -0.566632472421, (1, 3): -45.3847961735,
        (2, 3): -6.36331500378, (3, 3): -44.8075326679,
    }.items():  # fmt: skip
        wanted[i, j] = wanted[j, i] = h
    forward_over_reverse = tp.hessian(f)(start)
    reverse_over_reverse = tp.jacrev(tp.grad(f))(start)
    np.testing.assert_allclose(forward_over_reverse, wanted, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(reverse_over_reverse, forward_over_reverse, rtol=1e-12, atol=1e-12)
    state = mixed(*start)
    np.testing.assert_allclose((~mixed)(*state), start, atol=1e-14)


@tp.reversible
def logarithm(a, b):
    a += np.log(b)


def test_complex():
    _, pull = tp.vjp(lambda b: logarithm(0j, b)[0], 2 - 1j)
    _, plain = tp.vjp(lambda b: np.log(b), 2 - 1j)
    assert pull(3 + 3j)[0] == pytest.approx(plain(3 + 3j)[0], rel=1e-14)
    assert pull(3 + 3j)[0] == pytest.approx((3 + 3j) / (2 - 1j))  # published with the conjugate slope: 1.8 + 0.6i


@tp.reversible
def fibonacci(a, b, n):
    """After n steps a is the n-th number."""
    for _ in range(n):
        a += b
        a, b = b, a


@tp.reversible
def first_above(a, b, n, *, limit):
    """How many steps it takes until a number reaches the limit."""
    while tp.between(a < limit, n != 0):
        a += b
        a, b = b, a
        n += 1


def test_fibonacci():
    assert [fibonacci(0, 1, n)[0] for n in range(11)] == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55]
    assert (~fibonacci)(55, 89, 10) == (0, 1, 10)
    assert first_above(0, 1, 0, limit=100) == (144, 233, 12)
    assert (~first_above)(144, 233, 12, limit=100) == (0, 1, 0)


@tp.reversible
def by_nines(x):
    while tp.between(x < 100, x > 0):
        x += 9


def test_while_with_two_conditions():
    assert by_nines(0) == (108,)
    assert (~by_nines)(108) == (0,)


@tp.reversible
def every_second(s, x):
    for i in range(1, 4, 2):
        s *= 2.0
        s += x[i]


def test_stepped_loop():
    x = np.arange(5.0)
    s, _ = every_second(1.0, x)
    assert s == (1.0 * 2 + 1.0) * 2 + 3.0
    assert (~every_second)(s, x)[0] == 1.0


@tp.reversible
def copied_input(z, y):
    with tp.ancilla(y) as x:
        z += x


def test_copying_an_input():
    grads = tp.grad(lambda z, y: copied_input(z, y)[0], argnums=(0, 1))(1.0, 2.0)
    assert grads == (1.0, 1.0)


@tp.reversible
def shared(loss, x, z):
    for i in tp.prange(len(z)):
        loss += x * z[i]


@tp.reversible
def axpy(y, alpha, x):
    for i in tp.prange(len(y)):
        y[i] += alpha * x[i]


def test_shared_reads_in_parallel():
    z = np.arange(1.0, 1001.0)
    assert tp.grad(lambda x: shared(0.0, x, z)[0])(2.0) == z.sum()
    assert tp.grad(lambda a: axpy(np.zeros(1000), a, z)[0].sum())(2.0) == z.sum()
    y, _, _ = axpy(np.ones(1000), 2.0, z)
    np.testing.assert_array_equal(y, 1.0 + 2.0 * z)
    np.testing.assert_array_equal((~axpy)(y, 2.0, z)[0], np.ones(1000))


@tp.reversible
def box_muller(u, v):
    with tp.ancilla(0.0) as r, tp.ancilla(0.0) as angle:
        r += np.sqrt(-2 * np.log(u))
        angle += 2 * np.pi * v
        u -= np.exp(-(r**2) / 2)
        v -= angle / (2 * np.pi)
        u += r * np.cos(angle)
        v += r * np.sin(angle)
        r -= np.sqrt(u**2 + v**2)
        angle -= np.arctan2(v, u) % (2 * np.pi)


def test_box_muller():
    u, v = box_muller(0.5, 0.5)
    assert (u, v) == (pytest.approx(-1.1774100225154747, rel=1e-15), pytest.approx(0.0, abs=1e-15))
    jacobian = tp.jacobian(lambda x: np.array(box_muller(x[0], x[1])))(np.array([0.5, 0.5]))
    assert math.log(abs(np.linalg.det(jacobian))) == pytest.approx(2.5310242469692907, rel=1e-12)
    assert (~box_muller)(u, v) == (pytest.approx(0.5), pytest.approx(0.5))


@tp.reversible
def leapfrog(q, p, *, steps, h):
    for _ in range(steps):
        q += h / 2 * p
        p -= h * q / np.sqrt(np.sum(q**2)) ** 3
        q += h / 2 * p


def plain_leapfrog(q, p, steps, h):
    for _ in range(steps):
        q = q + h / 2 * p
        p = p - h * q / np.sqrt(np.sum(q**2)) ** 3
        q = q + h / 2 * p
    return q, p


def test_leapfrog():
    q, p = np.array([1.0, 0.0]), np.array([0.0, 0.8])
    end = leapfrog(q.copy(), p.copy(), steps=55, h=0.1)
    np.testing.assert_array_equal(end, tp.function(plain_leapfrog)(q, p, 55, 0.1))
    start = (~leapfrog)(end[0].copy(), end[1].copy(), steps=55, h=0.1)
    np.testing.assert_allclose(start, (q, p), atol=1e-13)

    def energy(q, p, h):
        q, p = leapfrog(q, p, steps=55, h=h)
        return np.sum(p**2) + q[0]

    def plain_energy(q, p, h):
        q, p = plain_leapfrog(q, p, 55, h)
        return np.sum(p**2) + q[0]

    found = tp.grad(energy, argnums=(0, 1, 2))(q, p, 0.1)
    wanted = tp.grad(plain_energy, argnums=(0, 1, 2))(q, p, 0.1)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    assert q.tolist() == [1.0, 0.0]


@pytest.mark.thorough
def test_a_loop_of_reversible_calls_is_inverted():
    """In an ordinary function, by the planner's own choice."""

    def many(q, p, n):
        for _ in range(n):
            q, p = leapfrog(q, p, steps=2, h=0.05)
        return np.sum(q * p)

    def plainly(q, p, n):
        for _ in range(n):
            q, p = plain_leapfrog(q, p, 2, 0.05)
        return np.sum(q * p)

    q, p = np.array([1.0, 0.2]), np.array([0.1, 0.8])
    found = tp.grad(many, argnums=(0, 1))
    report = found.explain(q, p, 1000)
    assert report.loops[-1].recovery == {"q": "invert", "p": "invert"}
    assert report.memory_bytes == 0
    for a, b in zip(found(q, p, 50), tp.grad(plainly, argnums=(0, 1))(q, p, 50), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
