/* y = A x, A in compressed rows. */
#include <stdint.h>

void spmv(int64_t rows, const int64_t *restrict start, const int64_t *restrict column,
          const double *restrict value, const double *restrict x, double *restrict y)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0.0;
        for (int64_t e = start[i]; e < start[i + 1]; e++)
            sum += value[e] * x[column[e]];
        y[i] = sum;
    }
}
