/* |A x|^2 / 2, A in compressed rows, and its gradient by the entries of A and by x. */
#include <stdint.h>
#include <string.h>

double spmv_adjoint(int64_t rows, const int64_t *restrict start, const int64_t *restrict column,
                    const double *restrict value, const double *restrict x, double *restrict value_adj,
                    double *restrict x_adj)
{
    double total = 0.0;
    memset(x_adj, 0, sizeof(double) * (size_t)rows);
#pragma omp parallel for schedule(static) reduction(+ : total, x_adj[:rows])
    for (int64_t i = 0; i < rows; i++) {
        double y = 0.0;
        for (int64_t e = start[i]; e < start[i + 1]; e++)
            y += value[e] * x[column[e]];
        for (int64_t e = start[i]; e < start[i + 1]; e++) {
            value_adj[e] = y * x[column[e]];
            x_adj[column[e]] += y * value[e];
        }
        total += y * y;
    }
    return 0.5 * total;
}
