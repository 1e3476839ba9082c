/* log sum exp(x), shifted by the maximum. */
#include <float.h>
#include <math.h>
#include <stdint.h>

double logsumexp(int64_t n, const double *restrict x)
{
    double top = -DBL_MAX, sum = 0.0;
#pragma omp parallel for simd schedule(static) reduction(max : top)
    for (int64_t i = 0; i < n; i++)
        top = x[i] > top ? x[i] : top;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i] - top);
    return top + log(sum);
}
