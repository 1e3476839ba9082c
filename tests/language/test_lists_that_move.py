"""Names of lists that are bound to others in loops and branches: `frontier = further`, `if better: best = this`."""

import numpy as np
import pytest

import tapeless as tp
from tests.language.same import same_values
from tests.language.test_worklists import random_graph
from tests.quick import unoptimized  # noqa: F401  (for all tests here)

rng = np.random.default_rng(5)
X = rng.normal(size=40)
START, TO, _ = random_graph(300, 5)


def levels(start, to):
    distance = np.full(len(start) - 1, -1)
    distance[0] = 0
    frontier = [0]
    d = 0
    while frontier:
        further = []
        d += 1
        for v in frontier:
            for k in range(start[v], start[v + 1]):
                if distance[to[k]] < 0:
                    distance[to[k]] = d
                    further.append(to[k])
        frontier = further
    return distance


def longest_of(n):
    longest, best = 0, [1]
    for s in range(1, n):
        path = [s]
        while path[-1] != 1:
            v = path[-1]
            path.append(v // 2 if v % 2 == 0 else 3 * v + 1)
        if len(path) > longest:
            longest = len(path)
            best = path
    return best


def either(x, c):
    found = [v for v in x if v > 0]
    if c:
        found = [1.0, 2.0]
    return found


def either_of_two(x, c):
    found = [v for v in x if v > 0]
    if c:
        found = [v for v in x if v < 0.5]
    return found, sum(found)


def empty_or_not(x, c):
    found = []
    if c:
        found = [2.0 * v for v in x if v < 0.5]
    return found


def twice_as_long(x, n):
    values = [x[0]]
    for k in range(n):
        following = []
        for v in values:
            following.append(0.5 * v + x[k])
            following.append(v * x[k + 1])
        values = following
    return values


def starts_again(x, n):
    run, longest = [], []
    for v in x:
        if v > 0:
            run = run + [v]
        else:
            if len(run) > len(longest):
                longest = run
            run = []
    return longest, n


def pairs_in_turn(x, n):
    now = [(0.0, 0)]
    for k in range(n):
        then = []
        for t, j in now:
            then.append((t + x[k], j + 1))
            if x[k] > 0:
                then.append((t * 0.5, j))
        now = then
    return now


def sieve(n):
    candidates = list(range(2, n))
    primes = []
    while candidates:
        p = candidates[0]
        primes.append(p)
        candidates = [c for c in candidates if c % p != 0]
    return primes


def changed_in_an_arm(x, c):
    found = [x[0]]
    other = found
    if c:
        found.append(x[1])
    else:
        other.extend([x[2], x[3]])
    return found, len(other), other


def appended_or_not(x, n):
    found = []
    for k in range(len(x)):
        if x[k] > 0.4 * n:
            found.append(x[k])
    return found


def changed_in_arms_of_a_loop(x, n):
    found = []
    for k in range(4):
        if x[k] > 0:
            found.append(x[k])
        elif x[k] < -0.5:
            found.append(0.0)
            found.append(x[k])
    return found, n


def after_the_loop_bound_anew(x, n):
    a = [x]
    for _ in range(n):
        a = [2.0]
    a.append(1.0)
    return sum(a)


def in_groups(x, n):
    groups, now = [], []
    for v in x:
        if v > 0:
            now.append(v)
        else:
            groups.append(sum(now))
            now = []
    return groups, now


def runs(x, n):
    lengths, now = [], [x[0]]
    for v in x[1:]:
        if v > now[-1]:
            now.append(v)
        else:
            lengths.append(len(now))
            now = [v]
    return lengths, now


def in_turns(x, n):
    a, b = [], []
    for i in range(n):
        a, b = b, a
        a.append(x[i])
    return a, b


def kept_by_another_name(x, n):
    now, before = [], []
    for i in range(n):
        now.append(x[i])
        if x[i] > 0:
            before = now
            now = []
    return now, before


def both_arms(x, c):
    if c:
        a = [x[0]]
    else:
        a = [x[1], x[2]]
    a.append(x[3])
    return a


PROGRAMS = [
    (after_the_loop_bound_anew, (1.5, 3)),
    (after_the_loop_bound_anew, (1.5, 0)),
    (in_groups, (X, 3)),
    (runs, (X, 3)),
    (in_turns, (X, 7)),
    (in_turns, (X, 0)),
    (kept_by_another_name, (X, 30)),
    (both_arms, (X, True)),
    (both_arms, (X, False)),
    (levels, (START, TO)),
    (longest_of, (60,)),
    (either, (X, True)),
    (either, (X, False)),
    (either_of_two, (X, True)),
    (either_of_two, (X, False)),
    (empty_or_not, (X, True)),
    (empty_or_not, (X, False)),
    (twice_as_long, (X, 7)),
    (starts_again, (X, 3)),
    (pairs_in_turn, (X, 9)),
    (sieve, (200,)),
    (changed_in_an_arm, (X, True)),
    (changed_in_an_arm, (X, False)),
    (changed_in_arms_of_a_loop, (X, 5)),
    (appended_or_not, (X[:1], 1)),
    (appended_or_not, (X[:2], 2)),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f, args", PROGRAMS)
def test_as_in_python(f, args):
    same_values(f, *args)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: twice_as_long(x, 4),
        lambda x: either_of_two(x, True)[0],
        lambda x: either(x, False),
        lambda x: starts_again(x, 0)[0],
        lambda x: [t for t, _ in pairs_in_turn(x, 5)],
    ],
)
def test_derivatives(f):
    tp.check_grads(lambda x: np.sum(np.array(f(x)) ** 2), (X,), order=1)


def changed_through_another_name(x, n):
    a = [1.0]
    b = a
    for k in range(n):
        b.append(x[k])
        b = [x[k]]
    return a


def changed_after_it_may_have_moved(x, n):
    a = [1.0]
    b = a
    for k in range(n):
        a = a + [x[k]]
    b.append(5.0)
    return a


@pytest.mark.parametrize("f", [changed_through_another_name, changed_after_it_may_have_moved])
def test_it_must_be_known_which_list_is_changed(f):
    with pytest.raises(tp.CompileError):
        tp.function(f)(X, 3)
