"""Products with sparse matrices, stored row by row (CSR): `data`, the columns of its elements, and where rows begin.

Only stored elements get derivatives. Columns of a row are sorted.
"""

import tapeless as tp


@tp.reversible
def csr_matvec(y, data, x, *, indices, indptr):
    """Adds the product of a sparse matrix and the vector x to y."""
    for i in range(len(y)):
        for k in range(indptr[i], indptr[i + 1]):
            y[i] += data[k] * x[indices[k]]


@tp.reversible
def csr_matmul(c, data, b, *, indices, indptr):
    """Adds the product of a sparse and a dense matrix to c."""
    for i in range(len(c)):
        for k in range(indptr[i], indptr[i + 1]):
            c[i] += data[k] * b[indices[k]]


@tp.reversible
def csr_dot(out, a, b, *, indices_a, indptr_a, indices_b, indptr_b):
    """Adds the sum of products of elements that stand at the same places of two sparse matrices to out."""
    for i in range(len(indptr_a) - 1):
        for k in range(indptr_a[i], indptr_a[i + 1]):
            with tp.ancilla(_first_from(indices_b, indptr_b[i], indptr_b[i + 1], indices_a[k])) as at:
                if at < indptr_b[i + 1] and indices_b[at] == indices_a[k]:
                    out += a[k] * b[at]


def _first_from(columns, start, stop, column):
    """Where, from start to stop, the first column is that is not less: by halving."""
    while start < stop:
        middle = (start + stop) // 2
        if columns[middle] < column:
            start = middle + 1
        else:
            stop = middle
    return start
