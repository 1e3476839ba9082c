/* Weighted histogram; each thread fills its own copy. */
#include <stdint.h>
#include <string.h>

void hist(int64_t n, int64_t bins, const int64_t *restrict keys, const double *restrict weights,
          double *restrict out)
{
    memset(out, 0, sizeof(double) * (size_t)bins);
#pragma omp parallel for schedule(static) reduction(+ : out[:bins])
    for (int64_t i = 0; i < n; i++)
        out[keys[i]] += weights[i];
}
