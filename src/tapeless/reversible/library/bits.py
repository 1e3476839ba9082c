"""Numbers of 32 bits, in larger integers, shuffled so that it can be undone: a hash and a random generator."""

import tapeless as tp

MASK = 0xFFFFFFFF
MULTIPLIERS = (0x2C1B3C6D, 0x297A2D39, 0x1B56C4E9, 0x7FEB352D)  # odd, below 2**31: products stay below 2**63


@tp.reversible
def scramble(a, b):
    """Mixes two numbers: four rounds, each of which changes one number by what is made of the other."""
    a ^= _mixed(b, MULTIPLIERS[0])
    b ^= _mixed(a, MULTIPLIERS[1])
    a ^= _mixed(b, MULTIPLIERS[2])
    b ^= _mixed(a, MULTIPLIERS[3])


@tp.reversible
def hash(a, b, words):
    """Makes (a, b) a hash of an array of numbers; from it and the array the old (a, b) come back."""
    for i in range(len(words)):
        a ^= words[i] & MASK
        scramble(a, b)


@tp.reversible
def xorshift(numbers, x, y, z, w):
    """Adds random numbers from 0 to 1 to `numbers`; x, y, z, w, not all 0, are the state of Marsaglia's xorshift128."""
    for i in range(len(numbers)):
        _xor_with_shifted(x, left=11, right=0)
        _xor_with_shifted(x, left=0, right=8)
        x ^= w ^ (w >> 19)
        x, y, z, w = y, z, w, x
        numbers[i] += w / (MASK + 1)


@tp.reversible
def _xor_with_shifted(x, *, left, right):
    """x ^ (x << left) or x ^ (x >> right), in place."""
    with tp.ancilla(0) as new:
        new ^= x ^ _shifted(x, left, right)
        x ^= _before_shift(new, left, right)
        x, new = new, x


def _shifted(x, left, right):
    """By one of them; the other is 0."""
    return (x << left) & MASK if left > 0 else x >> right


def _before_shift(new, left, right):
    """The x of which new is x ^ shifted(x)."""
    x = term = new
    for _ in range(32 // (left + right)):
        term = _shifted(term, left, right)
        x ^= term
    return x


def _mixed(x, multiplier):
    x = ((x ^ (x >> 16)) * multiplier) & MASK
    return x ^ (x >> 15)
