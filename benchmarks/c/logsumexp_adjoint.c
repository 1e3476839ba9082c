/* log sum exp(x), shifted by the maximum, and its gradient: the exponentials over their sum. */
#include <float.h>
#include <math.h>
#include <stdint.h>

double logsumexp_adjoint(int64_t n, const double *restrict x, double *restrict x_adj)
{
    double top = -DBL_MAX, sum = 0.0;
#pragma omp parallel for simd schedule(static) reduction(max : top)
    for (int64_t i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        x_adj[i] = exp(x[i] - top);
        sum += x_adj[i];
    }
    const double inverse = 1.0 / sum;
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < n; i++)
        x_adj[i] *= inverse;
    return top + log(sum);
}
