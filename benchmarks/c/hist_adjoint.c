/* The sum of squares of a weighted histogram, and its gradient by the weights. */
#include <stdint.h>
#include <stdlib.h>

double hist_adjoint(int64_t n, int64_t bins, const int64_t *restrict keys, const double *restrict weights,
                    double *restrict weights_adj)
{
    double *restrict out = calloc((size_t)bins, sizeof(double));
    double total = 0.0;
#pragma omp parallel for schedule(static) reduction(+ : out[:bins])
    for (int64_t i = 0; i < n; i++)
        out[keys[i]] += weights[i];
    for (int64_t b = 0; b < bins; b++) {
        total += out[b] * out[b];
        out[b] *= 2.0;
    }
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        weights_adj[i] = out[keys[i]];
    free(out);
    return total;
}
